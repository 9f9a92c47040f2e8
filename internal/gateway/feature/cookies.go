package feature

// LoginCookies is what the names of cookies of log-ins begin with. No other cookie may have it in its name.
const LoginCookies = "slipway-oidc-"
