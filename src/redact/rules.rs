//! What is taken out, as one table: a rule is a line with its name. `build.rs` reads this file too and builds the
//! patterns into automata, so it may use nothing but itself; decided in `docs/adr/0040-redaction-engine.md`.

/// A secret that shows by its shape.
#[derive(Debug)]
pub struct Rule {
    /// What `antigravity.redacted` says when it hit.
    pub name: &'static str,
    /// Every hit has one of these, of three bytes at least (or two and [`Lead`]). They are looked for first.
    pub prefixes: &'static [&'static str],
    /// What the whole secret looks like, from its first byte on, without Unicode.
    pub pattern: &'static str,
    /// What stands before the prefix.
    pub lead: Lead,
}

/// What stands before the prefix of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    /// Anything.
    Any,
    /// Nothing that belongs to a word.
    Word,
    /// Nothing that may belong to the secret, which can be as long as it likes: it would be read from each prefix within.
    Start,
    /// So many bytes of the secret itself.
    Bytes(usize),
    /// Digits of the secret itself.
    Digits,
}

use Lead::{Any, Bytes, Digits, Start, Word};

const fn rule(name: &'static str, lead: Lead, prefixes: &'static [&'static str], pattern: &'static str) -> Rule {
    Rule { name, prefixes, pattern, lead }
}

/// The secrets that show by their shape. A length is the least there is; what follows in the alphabet is taken with it.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    // Clouds.
    rule("aws-key", Word, &["AKIA", "ASIA", "ABIA", "ACCA", "A3T", "ABSK"], r"(?:(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16,}|ABSK[A-Za-z0-9+/=]{80,})"),
    rule("google-key", Any, &["AIza", "ya29.", "GOCSPX-", "1//0"], r"(?:AIza[\w-]{35,}|ya29\.[\w.-]{20,}|GOCSPX-[\w-]{20,}|1//0[\w-]{35,})"),
    rule("azure-key", Bytes(4), &["Q~"], r"[\w.~-]{3}\dQ~[\w.~-]{31,}"),
    rule("digitalocean-token", Any, &["doo_v1_", "dop_v1_", "dor_v1_"], r"do[opr]_v1_[a-f0-9]{40,}"),
    rule("alibaba-key", Word, &["LTAI"], r"LTAI[A-Za-z0-9]{16,}"),
    rule("cloudflare-key", Word, &["v1.0-", "cfut_", "cfat_", "cfk_"], r"(?:v1\.0-[a-f0-9]{24}-[a-f0-9]{64,}|cf(?:ut|at|k)_[A-Za-z0-9]{40,})"),
    rule("databricks-token", Word, &["dapi"], r"dapi[a-f0-9]{32,}(?:-\d+)?"),
    rule("fly-token", Any, &["FlyV1 ", "fm2_", "fo1_"], r"(?:FlyV1 )?(?:fm\d|fo1)_[\w+/=,-]{30,}"),
    rule("heroku-key", Any, &["HRKU-"], r"HRKU-[\w-]{30,}"),
    rule("planetscale-token", Any, &["pscale_"], r"pscale_(?:tkn|oauth|pw)_[\w.=-]{30,}"),
    rule("supabase-key", Any, &["sbp_", "sb_secret_"], r"(?:sbp_(?:v\d_)?[a-f0-9]{40,}|sb_secret_[\w-]{20,})"),
    rule("vault-token", Word, &["hvs.", "hvb.", "hvr."], r"hv[sbr]\.[\w-]{24,}"),
    rule("terraform-token", Bytes(14), &[".atlasv1."], r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    rule("doppler-token", Word, &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."], r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}"),
    rule("tailscale-key", Word, &["tskey-"], r"tskey-[a-z]+-[\w-]{16,}"),
    rule("pulumi-token", Word, &["pul-"], r"pul-[a-f0-9]{40,}"),

    // Forges and registries.
    rule("github-token", Any, &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"], r"(?:gh[pousr]_[\w.-]{20,}|github_pat_\w{22,})"),
    rule("gitlab-token", Any, &["glpat-", "gldt-", "glptt-", "glrt-", "glrtr-", "glcbt-", "glft-", "glsoat-", "glagent-", "glimt-", "gloas-", "glffct-", "GR1348941"], r"(?:gl(?:pat|dt|ptt|rt|rtr|cbt|ft|soat|agent|imt|oas|ffct)-|GR1348941)[\w.-]{16,}"),
    rule("atlassian-token", Any, &["ATBB", "ATATT3", "ATCTT3", "BBDC-"], r"(?:ATBB[A-Za-z0-9]{24,}|AT[AC]TT3[\w=-]{60,}|BBDC-[A-Za-z0-9+/=]{40,})"),
    rule("npm-token", Any, &["npm_"], r"npm_[A-Za-z0-9]{30,}"),
    rule("pypi-token", Any, &["pypi-AgE"], r"pypi-AgE[\w-]{40,}"),
    rule("crates-token", Word, &["cio"], r"cio[A-Za-z0-9]{32,}"),
    rule("rubygems-key", Any, &["rubygems_"], r"rubygems_[a-f0-9]{40,}"),
    rule("nuget-key", Word, &["oy2"], r"oy2[a-z0-9]{43,}"),
    rule("docker-token", Any, &["dckr_pat_", "dckr_oat_"], r"dckr_[op]at_[\w-]{20,}"),
    rule("artifactory-key", Word, &["AKCp", "cmVmd"], r"(?:AKCp[A-Za-z0-9]{60,}|cmVmd[A-Za-z0-9]{59,})"),
    rule("ci-token", Any, &["CCIPAT_", "CCIPRJ_", "bkua_", "sqp_", "squ_", "sqa_"], r"(?:CCIP(?:AT|RJ)_[\w-]{30,}|bkua_[a-f0-9]{40,}|sq[pua]_[a-f0-9]{40,})"),

    // Model vendors.
    rule("anthropic-key", Any, &["sk-ant-"], r"sk-ant-[\w-]{20,}"),
    rule("openai-key", Word, &["sk-"], r"sk-(?:(?:proj|svcacct|admin|None|or-v1|or|lf|kimi)-[\w-]{16,}|[A-Za-z0-9]{32,}|[A-Za-z0-9]+T3BlbkFJ[\w-]+)"),
    rule("huggingface-token", Word, &["hf_", "api_org_"], r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    rule("groq-key", Any, &["gsk_"], r"gsk_[A-Za-z0-9]{40,}"),
    rule("replicate-token", Word, &["r8_"], r"r8_[A-Za-z0-9]{30,}"),
    rule("model-key", Word, &["xai-", "pplx-", "nvapi-", "tvly-", "pcsk_", "csk-", "fw_", "lsv2_", "pa-", "jina_", "fc-", "r2_"], r"(?:xai-[\w-]{60,}|pplx-[A-Za-z0-9]{40,}|nvapi-[\w-]{40,}|tvly-(?:dev-|prod-)?[A-Za-z0-9]{24,}|pcsk_\w{40,}|csk-[a-z0-9]{40,}|fw_[A-Za-z0-9]{22,}|lsv2_(?:pt|sk)_[a-f0-9_]{40,}|pa-[A-Za-z0-9][\w-]{41,}|jina_\w{40,}|fc-[a-f0-9]{32,}|r2_[A-Za-z0-9]{40,})"),

    // Messages, payments, services.
    rule("slack-token", Any, &["xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xoxc-", "xoxd-", "xapp-"], r"(?:xox[abceoprsd](?:\.xox[bp])?-(?:[\w%-]){10,}|xapp-\d-[\w-]{10,})"),
    rule("webhook", Any, &["hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "webhook.office.com/"], r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{20,}|discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}|webhook\.office\.com/webhookb2/[\w@/-]{20,})"),
    rule("stripe-key", Word, &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "sk_prod_", "rk_prod_"], r"(?:[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,})"),
    rule("twilio-key", Word, &["SK0", "SK1", "SK2", "SK3", "SK4", "SK5", "SK6", "SK7", "SK8", "SK9", "SKa", "SKb", "SKc", "SKd", "SKe", "SKf"], r"SK[a-f0-9]{32}"),
    rule("sendgrid-key", Word, &["SG."], r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    rule("mail-key", Word, &["xkeysib-", "xsmtpsib-", "re_"], r"(?:x(?:key|smtp)sib-[a-f0-9]{60,}-\w+|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,})"),
    rule("mailchimp-key", Bytes(32), &["-us"], r"[a-f0-9]{32}-us\d{1,2}"),
    rule("telegram-token", Digits, &[":AA"], r"\d{8,10}:AA[\w-]{32,}"),
    rule("shopify-token", Any, &["shpat_", "shpca_", "shppa_", "shpss_"], r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32,}"),
    rule("square-token", Any, &["sq0atp-", "sq0csp-", "sq0idp-"], r"sq0(?:atp|csp|idp)-[\w-]{20,}"),
    rule("monitoring-key", Word, &["glc_", "glsa_", "NRAK-", "NRII-", "NRJS-", "sntrys_", "sntryu_", "dt0c01.", "dt0s01.", "dt0s16."], r"(?:glc_[A-Za-z0-9+/=]{32,}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|NR(?:AK|II|JS)-[\w-]{19,}|sntry[su]_[\w+/=]{32,}|dt0[cs]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64,})"),
    rule("workspace-token", Word, &["lin_api_", "lin_oauth_", "secret_", "ntn_", "figd_", "pat", "PMAK-", "nfp_", "napi_", "sdk-", "ops_eyJ", "dG9rO"], r"(?:lin_(?:api|oauth)_[A-Za-z0-9]{32,}|secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,}|figd_[\w-]{40,}|pat[A-Za-z0-9]{14}\.[a-f0-9]{64}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|nfp_[A-Za-z0-9]{36,}|napi_[a-z0-9]{60,}|sdk-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}|ops_eyJ[A-Za-z0-9+/=_-]{200,}|dG9rO[A-Za-z0-9+/=]{30,})"),

    // Not a vendor's.
    rule("jwt", Start, &["eyJ"], r"eyJ[\w-]{8,}\.(?:eyJ[\w-]*|[\w-]{8,})(?:\.[\w-]*){0,3}"),
    rule("age-key", Any, &["AGE-SECRET-KEY-1"], r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    rule("putty-key", Any, &["Private-Lines: "], r"Private-Lines: \d+\r?\n(?:[A-Za-z0-9+/=]+\r?\n?)+"),
];

/// The rules that are no line of the table, because they depend on what stands around a secret, in the order of
/// `scan::Around`.
pub const AROUND: &[&str] = &[
    "secret-name",
    "authorization",
    "cookie",
    "private-key",
    "url-password",
    "command-flag",
    "account-name",
    "cut-off",
    "unreadable",
];
