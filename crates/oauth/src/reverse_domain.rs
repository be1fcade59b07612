//! Private-use URI schemes that are reverse domain names, such as `com.example.app` (RFC 8252, section
//! 7.1).
//!
//! Operating systems have schemes of their own with a dot in them, such as `microsoft.windows.camera`, so a
//! dot alone is no proof. The first label has to be a top-level domain of these allowlists. After a country
//! code two more labels have to follow, unless products use that code as a generic one: `ai.claude` may be
//! a program, `in.search-ms` may not. Whether the domain is registered, and to whom, is not checked.

/// Generic top-level domains under which software vendors have their names.
const GENERIC: &str = "com org net edu gov mil int info biz name pro mobi app dev cloud tech online site website xyz \
    software systems tools tool chat page pages studio space world digital network solutions agency company group team \
    work works live social blog design codes computer engineering technology academy school university science \
    foundation community services support email finance health legal media news video audio music games game fun \
    club art bot build run data global zone one top inc ltd llc gmbh coop museum aero jobs travel asia cat";

/// Country codes (ISO 3166, with `uk`, `eu` and `su`) except `ms`, which Windows uses for its own schemes.
const COUNTRIES: &str = "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs \
    bt bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj \
    fk fm fo fr ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it \
    je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp \
    mq mr mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re \
    ro rs ru rw sa sb sc sd se sg sh si sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt \
    tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw";

/// Country codes that products use as generic top-level domains.
const LIKE_GENERIC: &str = "ai co eu fm gg io ly me sh so to tv";

/// True for a scheme that is a reverse domain name.
pub(crate) fn is_reverse_domain(scheme: &str) -> bool {
    let mut labels = scheme.split('.');
    let top = labels.next().unwrap_or_default();
    let names: Vec<&str> = labels.collect();
    let least = if listed(GENERIC, top) || listed(LIKE_GENERIC, top) {
        1
    } else if listed(COUNTRIES, top) {
        2
    } else {
        return false;
    };
    names.len() >= least && names.into_iter().all(is_label)
}

fn listed(list: &str, top: &str) -> bool {
    list.split(' ').any(|known| known == top) && !top.is_empty()
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_named_after_a_domain() {
        for good in [
            "com.example.app",
            "com.example",
            "com.googleusercontent.apps.123-abc",
            "org.foo",
            "net.foo.bar.baz",
            "dev.my-app2",
            "app.zed",
            "io.github.somebody.tool",
            "io.tool",
            "ai.claude",
            "me.somebody",
            "sh.cline",
            "de.firma.app",
            "in.example.app",
            "uk.co.example",
        ] {
            assert!(is_reverse_domain(good), "{good}");
        }
    }

    #[test]
    fn a_dot_does_not_make_a_domain() {
        for bad in [
            "",
            ".",
            "com",
            "com.",
            ".com",
            "com..app",
            "com.-app",
            "com.app-",
            "com.a_b",
            "c.app",
            "x.y.z",
            "ms.settings",
            "ms.windows.store",
            "ms-settings.com",
            "jar.https",
            "windows.immersivecontrolpanel",
            "windows.settings.com",
            "microsoft.windows.camera",
            "in.search-ms",
            "de.firma",
            "x-apple.systempreferences",
            "z39.50s",
            "zz.example.app",
            "com+x.example",
            "search.ms",
            "COM.example",
        ] {
            assert!(!is_reverse_domain(bad), "{bad}");
        }
    }

    #[test]
    fn the_lists_are_words_with_one_space_between() {
        for list in [GENERIC, COUNTRIES, LIKE_GENERIC] {
            let plain =
                |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
            assert!(list.split(' ').all(plain), "{list}");
        }
        assert!(COUNTRIES.split(' ').all(|code| code.len() == 2));
        assert!(LIKE_GENERIC.split(' ').all(|code| listed(COUNTRIES, code)));
    }
}
