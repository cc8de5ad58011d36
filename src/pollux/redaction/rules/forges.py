"""Tokens of code forges, package registries and build services."""

from __future__ import annotations

from pollux.redaction.rule import ALNUM, BASE64, HEX, SEP, UUID, WORD, after, just, some, token

ROWS = (
    token(
        "github-token",
        "GitHub token: personal, OAuth, app, installation, refresh",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        r"[A-Za-z0-9]{36,}",
    ),
    token(
        "github-fine-grained-token", "GitHub fine-grained personal access token", "github_pat_", r"[A-Za-z0-9_]{60,}"
    ),
    token(
        "gitlab-token",
        "GitLab personal, group or project access token",
        "glpat-",
        rf"{WORD}{{20,}}(?:\.[0-9a-z]{{2}}\.?[0-9a-z]{{7,9}})?",
    ),
    token("gitlab-deploy-token", "GitLab deploy token", "gldt-", some(WORD, 20)),
    token("gitlab-trigger-token", "GitLab pipeline trigger token", "glptt-", some(WORD, 20)),
    token(
        "gitlab-runner-token",
        "GitLab runner token",
        ("glrt-", "glrtr-"),
        rf"{WORD}{{20,}}(?:\.[A-Za-z0-9_.-]{{2,40}}\w)?",
    ),
    token("gitlab-runner-registration", "GitLab runner registration token", "GR1348941", some(WORD, 20)),
    token(
        "gitlab-job-token",
        "GitLab CI/CD job token",
        "glcbt-",
        rf"(?:{ALNUM}{{1,4}}_)?{WORD}{{20,}}(?:\.[A-Za-z0-9_.-]{{2,40}}\w)?",
    ),
    token("gitlab-feed-token", "GitLab feed token", "glft-", some(WORD, 20)),
    token("gitlab-mail-token", "GitLab incoming mail token", "glimt-", some(WORD, 20)),
    token("gitlab-agent-token", "GitLab agent for Kubernetes token", "glagent-", some(WORD, 40)),
    token("gitlab-scim-token", "GitLab SCIM token", "glsoat-", some(WORD, 20)),
    token("gitlab-oauth-secret", "GitLab OAuth application secret", "gloas-", some(WORD, 40)),
    token("gitlab-flag-token", "GitLab feature flags client token", "glffct-", some(WORD, 20)),
    token("bitbucket-app-password", "Bitbucket app password", "ATBB", some(ALNUM, 28), is_word=True),
    token(
        "bitbucket-token",
        "Bitbucket repository, project or workspace access token",
        "ATCTT3xFfGN0",
        r"[A-Za-z0-9_=-]{100,}(?:\.[A-Za-z0-9_=-]+)*",
    ),
    token("atlassian-token", "Atlassian API token", "ATATT3xFfGF0", r"[A-Za-z0-9_=-]{100,}(?:\.[A-Za-z0-9_=-]+)*"),
    token("sourcegraph-token", "Sourcegraph access token", ("sgp_", "sgd_"), rf"(?:{ALNUM}{{16}}_|local_)?{HEX}{{40}}"),
    token("npm-token", "npm access token", "npm_", some(ALNUM, 36)),
    after(
        "npm-auth",
        "npm registry password or token in .npmrc",
        ("_authtoken", "_auth", "_password"),
        rf"(?:[ \t]{{0,4}}=[ \t]{{0,4}}|[ \t]{{1,4}})[\"']?(?P<secret>(?:{UUID}|{BASE64}{{20,}}={{0,2}}))",
        in_run=True,
    ),
    token("pypi-token", "PyPI API token", "pypi-AgE", some(WORD, 50)),
    token("rubygems-key", "RubyGems API key", "rubygems_", just(HEX, 48)),
    token(
        "crates-token", "crates.io API token", "cio", rf"{ALNUM}{{32}}(?!{ALNUM})", is_word=True, probe=just(ALNUM, 12)
    ),
    token("nuget-key", "NuGet API key", "oy2", r"[a-z0-9]{43}(?![a-z0-9])", is_word=True),
    token("packagist-token", "Packagist token", ("packagist_out_", "packagist_ort_", "packagist_uut_"), some(HEX, 60)),
    token("clojars-token", "Clojars deploy token", "CLOJARS_", r"[a-z0-9]{60}"),
    token("artifactory-key", "JFrog API key", "AKCp", some(ALNUM, 50), is_word=True),
    token("artifactory-reference-token", "JFrog reference token", "cmVmdGtu", some(ALNUM, 50)),
    token("docker-token", "Docker access token", ("dckr_pat_", "dckr_oat_"), some(WORD, 27)),
    after(
        "docker-auth",
        "registry login in a Docker configuration",
        "auth",
        rf"[\"'\\]{{1,8}}[ \t]{{0,4}}:[ \t]{{0,4}}[\"'\\]{{1,8}}(?P<secret>{BASE64}{{20,}}={{0,2}})(?=[\"'\\]|\Z)",
        probe="[\"'\\\\]",
        in_run=True,
    ),
    token("circleci-token", "CircleCI token", ("CCIPAT_", "CCIPRJ_"), rf"{ALNUM}{{20,}}_{HEX}{{40}}"),
    token("buildkite-token", "Buildkite token", ("bkua_", "bkaj_", "bkct_"), some(ALNUM, 32)),
    token("sonar-token", "SonarQube or SonarCloud token", ("squ_", "sqp_", "sqa_"), just(HEX, 40)),
    token("octopus-key", "Octopus Deploy API key", "API-", r"[A-Z0-9]{26,}(?![A-Za-z0-9])", is_word=True),
    token(
        "harness-token",
        "Harness access token",
        ("pat.", "sat."),
        rf"{WORD}{{22}}\.{HEX}{{24}}\.{ALNUM}{{20}}",
        is_word=True,
        probe=just(WORD, 12),
    ),
    token("launchdarkly-key", "LaunchDarkly key", ("sdk-", "mob-", "api-"), UUID, is_word=True, probe=f"{HEX}{{8}}-"),
    token("postman-key", "Postman API key", "PMAK-", rf"{HEX}{{24}}-{HEX}{{34}}"),
    token("readme-key", "ReadMe API key", "rdme_", some("[a-z0-9]", 60)),
    after(
        "codecov-token",
        "Codecov upload token, by the name before it",
        "codecov",
        rf"[A-Za-z_-]{{0,20}}{SEP}(?P<secret>{UUID})",
        in_run=True,
    ),
)
