//! A tiny server that takes reports and answers as told, over a real socket.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;

/// One request as it came.
#[derive(Debug)]
pub struct Request {
    pub line: String,
    pub authorization: String,
    pub body: Value,
}

/// Status and body of an answer.
pub type Answer = (u16, String);

/// Starts to answer each request, counted from 0, by `answer`; gives the address and the requests as they come.
pub fn serve(answer: impl Fn(usize, &Request) -> Answer + Send + 'static) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    // Ends with the test's process.
    thread::spawn(move || {
        let mut count = 0;
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            // One connection carries many requests.
            while let Some(request) = read(&mut reader) {
                let (status, body) = answer(count, &request);
                count += 1;
                let _ = sender.send(request);
                if write(&stream, status, &body).is_err() {
                    break;
                }
            }
        }
    });
    (address, receiver)
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&length| length > 0)?;
    let (mut length, mut authorization) = (0, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|&length| length > 0)?;
        let Some((name, value)) = header.trim().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => value.clone_into(&mut authorization),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap();
    Some(Request { line: line.trim().to_owned(), authorization, body })
}

fn write(mut stream: &TcpStream, status: u16, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes())
}
