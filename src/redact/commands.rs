//! Commands that are told a secret, and how, as one table: a command is a line. May not read a secret, which is `flags` and
//! `given`, and may hold no pointer; decided in `docs/adr/0040-redaction-engine.md`.

use super::bytes::{byte, part};
use super::steps::look;

/// How a command is told a secret. Letters are flags; each is a bit, and so several commands can be put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Takes {
    /// `-u user:password`.
    pub(super) user: u64,
    /// What stands between the user and the password.
    pub(super) divider: u8,
    /// `-p x` or `-px`.
    pub(super) flag: u64,
    /// `-w x` alone.
    pub(super) apart: u64,
    /// `-px` alone.
    pub(super) joined: u64,
    /// `-b name=x`.
    pub(super) pair: u64,
    /// `--value x`.
    pub(super) value: bool,
    /// `api=x`, whatever the name.
    pub(super) pairs: bool,
    /// `password x`.
    pub(super) says: bool,
    /// From a pipe, or behind `<<<`.
    pub(super) input: bool,
    /// What follows at once.
    pub(super) next: Next,
}

/// What follows the words of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing that is known.
    Any,
    /// What it says, maybe to a command that reads a secret.
    Said,
    /// A name, and what it is given.
    Given,
    /// So many words on, a secret.
    Word(u8),
    /// So many words on, a secret if it looks as if made by a machine.
    Token(u8),
    /// In quotes, the password of an account of a database.
    Sql,
}

impl Next {
    /// The same, one word on.
    pub(super) const fn one_less(self) -> Self {
        match self {
            Self::Word(count) => Self::Word(count.saturating_sub(1)),
            Self::Token(count) => Self::Token(count.saturating_sub(1)),
            other => other,
        }
    }
}

/// Longest begin of a command in the table.
pub(super) const LONGEST: usize = 24;

/// A line of the table. It holds no pointer, so that a program that never looks at it never loads it.
pub(super) struct Command {
    begin: [u8; LONGEST],
    length: usize,
    pub(super) takes: Takes,
}

impl Command {
    /// How it begins.
    pub(super) fn begin(&self) -> &[u8] {
        part(&self.begin, 0, self.length)
    }

    /// The letter at that place of its begin.
    #[expect(clippy::indexing_slicing, reason = "evaluated when compiled")]
    pub(super) const fn letter(&self, place: usize) -> u8 {
        self.begin[place]
    }

    /// Whether it stands there. With a capital letter in the table, capitals count.
    fn stands(&self, bytes: &[u8], at: usize) -> bool {
        let exact = self.begin().iter().any(u8::is_ascii_uppercase);
        let same =
            |(found, letter): (&u8, &u8)| if exact { found == letter } else { found.eq_ignore_ascii_case(letter) };
        let found = part(bytes, at, at + self.length);
        let length = found.iter().zip(self.begin()).take_while(|pair| same(*pair)).count();
        look(length + 1);
        length == self.length
    }
}

/// Letters differ in their last six bits.
const fn bits(letters: &str) -> u64 {
    let mut bits = 0;
    let mut rest = letters.as_bytes();
    while let Some((&letter, after)) = rest.split_first() {
        bits |= 1 << (letter & 63);
        rest = after;
    }
    bits
}

/// Whether the flag is one of those.
pub(super) const fn has(flags: u64, letter: u8) -> bool {
    letter.is_ascii_alphabetic() && flags & (1 << (letter & 63)) != 0
}

/// Of a command that is told no secret.
pub(super) const NOTHING: Takes = Takes {
    user: 0,
    divider: b':',
    flag: 0,
    apart: 0,
    joined: 0,
    pair: 0,
    value: false,
    pairs: false,
    says: false,
    input: false,
    next: Next::Any,
};
const INPUT: Takes = Takes { input: true, ..NOTHING };
const GIVEN: Takes = next(Next::Given);
const SQL: Takes = next(Next::Sql);

const fn flag(letters: &str) -> Takes {
    Takes { flag: bits(letters), ..NOTHING }
}

const fn apart(letters: &str) -> Takes {
    Takes { apart: bits(letters), ..NOTHING }
}

const fn joined(letters: &str) -> Takes {
    Takes { joined: bits(letters), ..NOTHING }
}

const fn user(letters: &str, divider: u8) -> Takes {
    Takes { user: bits(letters), divider, ..NOTHING }
}

const fn next(next: Next) -> Takes {
    Takes { next, ..NOTHING }
}

const fn word(count: u8) -> Takes {
    next(Next::Word(count))
}

const fn token(count: u8) -> Takes {
    next(Next::Token(count))
}

#[expect(clippy::indexing_slicing, reason = "evaluated when compiled")]
const fn command(begin: &str, takes: Takes) -> Command {
    let mut bytes = [0; LONGEST];
    let mut at = 0;
    while at < begin.len() {
        bytes[at] = begin.as_bytes()[at];
        at += 1;
    }
    Command { begin: bytes, length: begin.len(), takes }
}

/// Commands, and words of languages that are told a secret like them.
#[rustfmt::skip]
pub(super) static COMMANDS: [Command; 80] = [
    // Transfer.
    command("curl", Takes { pair: bits("b"), ..user("uU", b':') }),
    command("http ", user("a", b':')),
    command("https ", user("a", b':')),
    command("xh ", user("a", b':')),
    command("lftp ", user("u", b',')),
    command("smbclient ", user("U", b'%')),
    command("etcdctl ", user("u", b':')),
    command("sshpass", flag("p")),
    command("plink ", flag("p")),
    command("pscp ", flag("p")),
    command("psexec", flag("p")),
    command("mosquitto_", apart("P")),
    command("snmpwalk", apart("cAX")),
    command("snmpget", apart("cAX")),
    command("ipmitool", apart("P")),

    // Databases.
    command("mysql", Takes { says: true, ..joined("p") }),
    command("mariadb", Takes { says: true, ..joined("p") }),
    command("mongo", flag("p")),
    command("redis-cli", Takes { says: true, ..apart("a") }),
    command("sqlcmd", flag("P")),
    command("bcp ", flag("P")),
    command("cqlsh", apart("p")),
    command("ldap", flag("pw")),
    command("rabbitmqadmin", apart("p")),
    command("rabbitmqctl add_user ", word(2)),
    command("change_password ", word(2)),
    command("requirepass ", word(1)),
    command("masterauth ", word(1)),
    command("influx ", apart("t")),
    command("by ", SQL),
    command("password ", SQL),

    // Registries and clouds.
    command("docker login", Takes { input: true, ..flag("p") }),
    command("podman login", Takes { input: true, ..flag("p") }),
    command("registry login", Takes { input: true, ..flag("p") }),
    command("oc login", apart("p")),
    command("az login", apart("p")),
    command("twine upload", apart("p")),
    command("nuget add source", apart("p")),
    command("nuget push", apart("k")),
    command("cargo login ", token(1)),
    command("vault login ", token(1)),
    command("operator unseal ", token(1)),
    command("vault kv put ", Takes { pairs: true, ..NOTHING }),
    command("vault write ", Takes { pairs: true, ..NOTHING }),
    command("kubectl create secret", Takes { pairs: true, ..NOTHING }),
    command("keyvault secret set", Takes { value: true, ..NOTHING }),
    command("gh secret set", Takes { value: true, ..Takes { input: true, ..apart("b") } }),
    command("gh auth login", INPUT),
    command("secret create", INPUT),
    command("secret put", INPUT),
    command("secrets create", INPUT),
    command("secrets versions add", INPUT),
    command("vercel env add", INPUT),
    command("bw login ", word(2)),

    // Keys, archives, accounts.
    command("openssl enc", apart("kK")),
    command("ssh-keygen", apart("NP")),
    command("zip ", flag("P")),
    command("unzip ", flag("P")),
    command("7z ", joined("p")),
    command("security add-", apart("w")),
    command("security unlock-", apart("p")),
    command("chpasswd", INPUT),
    command("passwd --stdin", INPUT),
    command("sudo -S", INPUT),
    command("useradd ", apart("p")),
    command("usermod ", apart("p")),
    command("htpasswd -b", word(3)),
    command("htpasswd -cb", word(3)),
    command("htpasswd -nb", word(2)),
    command("config http-basic.", word(3)),
    command("nmcli ", Takes { says: true, ..NOTHING }),
    command("wpa_passphrase ", word(2)),
    command("convertto-securestring ", word(1)),

    // What may be read from a pipe.
    command("echo ", next(Next::Said)),
    command("printf ", next(Next::Said)),

    // A name, and what it is given.
    command("ENV ", GIVEN),
    command("set", GIVEN),
    command("#define ", GIVEN),
    command("config ", GIVEN),
    command("consul kv put ", GIVEN),
];

/// The command that stands there.
pub(super) fn at(bytes: &[u8], at: usize) -> Option<&'static Command> {
    let mut candidates = BEGINS.at(bytes, at);
    while candidates != 0 {
        let found = COMMANDS.get(candidates.trailing_zeros() as usize)?;
        if found.stands(bytes, at) {
            return Some(found);
        }
        candidates &= candidates - 1;
    }
    None
}

/// Which commands may begin with a byte at the first, second and third place: a bit each.
struct Begins([[u128; 256]; 3]);

static BEGINS: Begins = Begins::new();

impl Begins {
    #[expect(clippy::indexing_slicing, reason = "evaluated when compiled")]
    const fn new() -> Self {
        let mut begins = Self([[0; 256]; 3]);
        let mut command = 0;
        while command < COMMANDS.len() {
            let mut place = 0;
            while place < 3 {
                let letter = COMMANDS[command].letter(place);
                begins.0[place][letter.to_ascii_lowercase() as usize] |= 1 << command;
                begins.0[place][letter.to_ascii_uppercase() as usize] |= 1 << command;
                place += 1;
            }
            command += 1;
        }
        begins
    }

    fn at(&self, bytes: &[u8], at: usize) -> u128 {
        let [first, second, third] = &self.0;
        let of = |table: &[u128; 256], at| table.get(usize::from(byte(bytes, at))).copied().unwrap_or(u128::MAX);
        of(first, at) & of(second, at + 1) & of(third, at + 2)
    }
}

impl Takes {
    /// Both commands'.
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            user: self.user | other.user,
            divider: if other.user == 0 { self.divider } else { other.divider },
            flag: self.flag | other.flag,
            apart: self.apart | other.apart,
            joined: self.joined | other.joined,
            pair: self.pair | other.pair,
            value: self.value | other.value,
            pairs: self.pairs | other.pairs,
            says: self.says | other.says,
            input: self.input | other.input,
            next: Next::Any,
        }
    }
}
