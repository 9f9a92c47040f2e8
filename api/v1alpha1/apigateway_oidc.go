package v1alpha1

// OIDCAuth lets browsers log in at an OpenID Connect provider, with the authorization code flow and PKCE. A browser that asks for a page and is
// not logged in is sent to the provider. Other requests are answered with 401: scripts, images, forms. The session is in
// encrypted cookies, so every replica knows it. No backend of the gateway gets these cookies. Routes of a gateway whose
// auth.oidc is the same but for claimsToHeaders share sessions.
type OIDCAuth struct {
	// issuer of the provider, as it writes it itself: an https address, or an http one where the network between is trusted, of
	// at most 512 characters, without query and fragment. Its document is fetched from <issuer>/.well-known/openid-configuration.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^?#@ ]+$')",message="auth.oidc.issuer must be an http or https address without query, fragment, user and blanks"
	// +required
	Issuer string `json:"issuer"`
	// clientID of the gateway at the provider, at most 256 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	ClientID string `json:"clientID"`
	// clientSecretRef is a key of a Secret that holds the client secret, of at least 16 characters. It may hold a second line,
	// the secret before: its sessions stay valid. The Secret must have another key, issuer, with the issuer that gets the secret.
	// +required
	ClientSecretRef OIDCSecret `json:"clientSecretRef"`
	// scopes that are asked for beside openid, at most 16. With offline_access, many providers give out the refresh token with
	// which sessions are renewed. Default: openid alone.
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	Scopes []OIDCScope `json:"scopes,omitempty"`
	// redirectPath is where the provider sends browsers back to, at most 256 characters. The provider must know it, with the
	// scheme and the host, as a redirect URI of the client. Requests for it must come to this route, or to one of the same host
	// that shares its sessions. Default /oauth2/callback.
	// +kubebuilder:default="/oauth2/callback"
	// +optional
	RedirectPath OIDCPath `json:"redirectPath,omitempty"`
	// logoutPath is where browsers log out, here and at the provider if that has a place for it. Requests of other sites do not
	// log out. Requests for it must come to this route, as with redirectPath. Default: none.
	// +optional
	LogoutPath OIDCPath `json:"logoutPath,omitempty"`
	// afterLogout is the page to which browsers come after a log-out, at most 256 characters. The provider must know it, with
	// the scheme and the host, as a post-logout redirect URI of the client. Without logoutPath it does
	// nothing. Default: browsers stay at the provider, or see that they are logged out.
	// +optional
	AfterLogout OIDCPage `json:"afterLogout,omitempty"`
	// sessionLength is how long a session lasts at the most, in minutes or hours, from 1m to 24h. Default 12h.
	// +kubebuilder:default="12h"
	// +optional
	SessionLength OIDCDuration `json:"sessionLength,omitempty"`
	// claimsToHeaders gives claims of the ID token to the backend as headers, at most 16. What a client sends under these names
	// is removed. Default: none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=header
	// +optional
	ClaimsToHeaders []OIDCClaim `json:"claimsToHeaders,omitempty"`
	// forwardToken is the token that the backend gets in the header Authorization, after the word Bearer: None, AccessToken or
	// IDToken. What a client sends there is then removed. Default None.
	// +kubebuilder:default=None
	// +optional
	ForwardToken ForwardedToken `json:"forwardToken,omitempty"`
}

// OIDCSecret is a key of a Secret in the same namespace.
type OIDCSecret struct {
	// name of the Secret, at most 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+((-+|[.])[a-z0-9]+)*$')",message="name must be a DNS subdomain: lower case letters, digits, '-' and '.'"
	// +required
	Name string `json:"name"`
	// key in the Secret, at most 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Key string `json:"key"`
}

// OIDCDuration is a length of time, in minutes or hours, such as 30m or 12h, from 1m to 24h.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^(([1-9][0-9]{0,2}|1[0-3][0-9]{2}|14[0-3][0-9]|1440)m|([1-9]|1[0-9]|2[0-4])h)$')",message="auth.oidc.sessionLength must be from 1m to 24h, in minutes or in hours, such as 30m or 12h"
type OIDCDuration string

// OIDCClaim gives a claim of the ID token to the backend.
type OIDCClaim struct {
	// claim of the token, at most 128 characters; a dot leads into an object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Claim string `json:"claim"`
	// header that holds the claim.
	// +required
	Header ListedHeaderName `json:"header"`
}

// OIDCScope is a scope.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="!self.matches('[^!#-\\\\[\\\\]-~]')",message="a scope must hold only visible ASCII characters, without quotation marks and backslashes"
type OIDCScope string

// OIDCPath is a path that the gateway answers itself.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^(/[-A-Za-z0-9._~]+)+$')",message="a path of auth.oidc must be like /oauth2/callback: it must start with '/', must not end with it, and hold only letters, digits and -._~ between"
type OIDCPath string

// OIDCPage is a page of the host.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^/([-A-Za-z0-9._~]+(/[-A-Za-z0-9._~]+)*)?$')",message="auth.oidc.afterLogout must be / or like /goodbye: it must not end with '/', and hold only letters, digits and -._~ between"
type OIDCPage string

// ForwardedToken is a token for the backend.
//
// +kubebuilder:validation:Enum=None;AccessToken;IDToken
type ForwardedToken string

const (
	// ForwardNoToken gives the backend none.
	ForwardNoToken ForwardedToken = "None"
	// ForwardAccessToken gives it the access token.
	ForwardAccessToken ForwardedToken = "AccessToken"
	// ForwardIDToken gives it the ID token.
	ForwardIDToken ForwardedToken = "IDToken"
)
