//! PTX text to tokens.
//!
//! Owns the cutting. Does not know what tokens mean. A name continues over `.` and `::`, so an
//! opcode with all its modifiers (`ld.global.nc.v4.f32`) is one token, and so is a special register
//! with its component (`%tid.x`). A token that begins with `.` is a directive or a type.

use super::error::{ParseError, ParseErrorKind};

/// A number as it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// An integer; the sign is a token of its own.
    Int(u64),
    /// `0fXXXXXXXX`: the bits of a single.
    F32(u32),
    /// `0dXXXXXXXXXXXXXXXX` or a decimal float: the bits of a double.
    F64(u64),
}

/// One token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Token<'a> {
    /// A name, opcode, directive or special register.
    Word(&'a str),
    /// A number.
    Number(Number),
    /// The inside of a string literal, escapes left as they are.
    Str(&'a str),
    /// One punctuation character.
    Punct(u8),
    /// The end of the text.
    End,
}

/// Cuts a text into tokens, one ahead.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    ahead: Option<(Token<'a>, u32)>,
}

fn word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

fn word_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Lexer { text, at: 0, line: 1, ahead: None }
    }

    /// The line of the next token.
    pub(super) fn line(&mut self) -> u32 {
        match self.ahead {
            Some((_, line)) => line,
            None => self.line,
        }
    }

    pub(super) fn fail<T>(&mut self, kind: ParseErrorKind) -> Result<T, ParseError> {
        Err(ParseError { line: self.line(), kind })
    }

    pub(super) fn peek(&mut self) -> Result<Token<'a>, ParseError> {
        if let Some((token, _)) = self.ahead {
            return Ok(token);
        }
        let token = self.scan()?;
        self.ahead = Some((token, self.line));
        Ok(token)
    }

    pub(super) fn next(&mut self) -> Result<Token<'a>, ParseError> {
        let token = self.peek()?;
        self.ahead = None;
        Ok(token)
    }

    /// Skips blank space and comments.
    fn skip_blank(&mut self) -> Result<(), ParseError> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if byte == b'\n' {
                self.line += 1;
                self.at += 1;
            } else if byte.is_ascii_whitespace() || byte == 0 {
                self.at += 1;
            } else if bytes[self.at..].starts_with(b"//") {
                self.at = bytes[self.at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| self.at + n);
            } else if bytes[self.at..].starts_with(b"/*") {
                let rest = &bytes[self.at + 2..];
                let Some(length) = rest.windows(2).position(|pair| pair == b"*/") else {
                    return self.fail(ParseErrorKind::UnexpectedEnd("a comment"));
                };
                self.line += rest[..length].iter().filter(|&&b| b == b'\n').count() as u32;
                self.at += length + 4;
            } else {
                break;
            }
        }
        Ok(())
    }

    fn scan(&mut self) -> Result<Token<'a>, ParseError> {
        self.skip_blank()?;
        let bytes = self.text.as_bytes();
        let Some(&byte) = bytes.get(self.at) else { return Ok(Token::End) };
        let start = self.at;
        if byte == b'"' {
            return self.string();
        }
        if byte.is_ascii_digit() || (byte == b'.' && bytes.get(start + 1).is_some_and(u8::is_ascii_digit)) {
            return self.number();
        }
        if word_start(byte) {
            self.at += 1;
            while let Some(&next) = bytes.get(self.at) {
                if byte == b'.' && next == b'.' {
                    // `.reg.b32` is two directives; the dots of an opcode are inside a word that
                    // begins with a letter.
                    break;
                }
                if word_part(next) {
                    self.at += 1;
                } else if bytes[self.at..].starts_with(b"::") && bytes.get(self.at + 2).is_some_and(|&b| word_part(b)) {
                    self.at += 2;
                } else {
                    break;
                }
            }
            // Every byte of a word is ASCII, so the slice lies on character boundaries.
            return Ok(Token::Word(&self.text[start..self.at]));
        }
        if byte.is_ascii_punctuation() {
            self.at += 1;
            return Ok(Token::Punct(byte));
        }
        self.fail(ParseErrorKind::BadByte(byte))
    }

    fn string(&mut self) -> Result<Token<'a>, ParseError> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    self.at = at + 1;
                    return Ok(Token::Str(&self.text[start..at]));
                }
                b'\\' => at += 2,
                b'\n' => break,
                _ => at += 1,
            }
        }
        self.fail(ParseErrorKind::UnexpectedEnd("a string"))
    }

    fn number(&mut self) -> Result<Token<'a>, ParseError> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start;
        while bytes.get(at).is_some_and(|&b| b.is_ascii_alphanumeric() || b == b'.') {
            at += 1;
            let exponent = !bytes[start..at].starts_with(b"0x") && !bytes[start..at].starts_with(b"0X");
            if exponent && matches!(bytes[at - 1], b'e' | b'E') && matches!(bytes.get(at), Some(b'+' | b'-')) {
                at += 1;
            }
        }
        let text = &self.text[start..at];
        self.at = at;
        match read_number(text) {
            Some(number) => Ok(Token::Number(number)),
            None => self.fail(ParseErrorKind::BadNumber(text.chars().take(40).collect())),
        }
    }
}

fn read_number(text: &str) -> Option<Number> {
    let lower = text.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0f")
        && hex.len() == 8
    {
        return u32::from_str_radix(hex, 16).ok().map(Number::F32);
    }
    if let Some(hex) = lower.strip_prefix("0d")
        && hex.len() == 16
    {
        return u64::from_str_radix(hex, 16).ok().map(Number::F64);
    }
    let whole = lower.strip_suffix('u').unwrap_or(&lower);
    let int = if let Some(hex) = whole.strip_prefix("0x") {
        u64::from_str_radix(hex, 16)
    } else if let Some(bits) = whole.strip_prefix("0b") {
        u64::from_str_radix(bits, 2)
    } else if whole.len() > 1 && whole.starts_with('0') && whole.bytes().all(|b| b.is_ascii_digit()) {
        u64::from_str_radix(whole, 8)
    } else if whole.bytes().all(|b| b.is_ascii_digit()) {
        whole.parse()
    } else {
        return lower.parse::<f64>().ok().map(|value| Number::F64(value.to_bits()));
    };
    int.ok().map(Number::Int)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<Token<'_>>, ParseError> {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        loop {
            match lexer.next()? {
                Token::End => return Ok(tokens),
                token => tokens.push(token),
            }
        }
    }

    #[test]
    fn words_numbers_and_marks() {
        let tokens =
            all("@!%p1 ld.shared::cluster.f32 %f1, [%rd2+-8]; // x\n/* y\n */ 0f3F800000 0x10U 017 1.5 \"a\\\"b\"")
                .unwrap();
        assert_eq!(tokens[0], Token::Punct(b'@'));
        assert_eq!(tokens[1], Token::Punct(b'!'));
        assert_eq!(tokens[2], Token::Word("%p1"));
        assert_eq!(tokens[3], Token::Word("ld.shared::cluster.f32"));
        assert_eq!(all(".reg.b32 x").unwrap().len(), 3);
        let rest = &tokens[tokens.len() - 5..];
        assert_eq!(rest[0], Token::Number(Number::F32(0x3f80_0000)));
        assert_eq!(rest[1], Token::Number(Number::Int(16)));
        assert_eq!(rest[2], Token::Number(Number::Int(15)));
        assert_eq!(rest[3], Token::Number(Number::F64(1.5f64.to_bits())));
        assert_eq!(rest[4], Token::Str("a\\\"b"));
    }

    #[test]
    fn damage_is_named() {
        assert_eq!(
            all("\n\"abc").unwrap_err(),
            ParseError { line: 2, kind: ParseErrorKind::UnexpectedEnd("a string") }
        );
        assert!(matches!(all("/* abc").unwrap_err().kind, ParseErrorKind::UnexpectedEnd("a comment")));
        assert!(matches!(all("0f12").unwrap_err().kind, ParseErrorKind::BadNumber(_)));
        assert!(matches!(all("99999999999999999999").unwrap_err().kind, ParseErrorKind::BadNumber(_)));
        assert!(matches!(all("é").unwrap_err().kind, ParseErrorKind::BadByte(0xc3)));
        assert!(all("\"ab\\").is_err());
    }
}
