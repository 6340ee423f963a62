import type { ErrorCode } from '../../errors.ts';
import type { Why } from '../../ports/refusals.ts';
import { resourceErrorTexts } from './resource-error-texts.ts';

/**
 * The texts about an error code. They are shown on its page in the reference, and for errors that no rule explains
 * better.
 */
export interface ErrorText {
  readonly kind: Why['kind'];
  /** What the error is about. If undefined, it is about the resource that the request's path names. */
  readonly subject?: string;
  /** A whole sentence. */
  readonly when: string;
  /** Continues a sentence after "expected". */
  readonly expected: string;
  /** A whole sentence that says what to do. */
  readonly next: string;
}

/** The texts about every error code. Those about requests, credentials and logins come first. */
export const errorTexts: Readonly<Record<ErrorCode, ErrorText>> = {
  missing_or_invalid_token: {
    kind: 'credentials',
    subject: 'the header `authorization`',
    when: 'The header `authorization` is missing, has another scheme, or has a token of a user that is not valid.',
    expected: 'HTTP Basic with the app id and secret, or a live access token of a user',
    next: 'Send the app id and secret with HTTP Basic; the sandbox prints both at the start.',
  },
  invalid_app_credentials: {
    kind: 'credentials',
    subject: 'the app of HTTP Basic',
    when: 'No app has the id and the secret of HTTP Basic.',
    expected: 'an app of this server with its secret',
    next: 'Compare both with those of the app: the sandbox prints its app id and secret at the start, and `--ready-file` writes them to a file.',
  },
  missing_or_invalid_service_app_id: {
    kind: 'credentials',
    subject: 'the header `service-app-id`',
    when: 'The header that names the app is missing, or names an app other than that of HTTP Basic.',
    expected: 'the id of the app, as in HTTP Basic',
    next: 'Send the app id in the header `service-app-id` too.',
  },
  missing_or_invalid_service_client_id: {
    kind: 'credentials',
    subject: 'the header of the client id',
    when: 'The header that names the client is missing or names none.',
    expected: 'the id of a client of the app',
    next: 'Send the id of the client in its header.',
  },
  missing_or_invalid_service_account_id: {
    kind: 'credentials',
    subject: 'the header of the account id',
    when: 'The header that names the account is missing or names none.',
    expected: 'the id of an account of the app',
    next: 'Send the id of the account in its header.',
  },
  https_required: {
    kind: 'credentials',
    subject: 'the URL',
    when: 'The request came over plain HTTP.',
    expected: '`https`',
    next: 'Use `https`, or start the sandbox with `--plain-http`.',
  },
  foreign_host: {
    kind: 'credentials',
    subject: 'the host of the request',
    when: 'The host that the request names is not one of this server, as when a web page has its own name point to it.',
    expected: '`127.0.0.1`, `localhost` or the public URL of the server',
    next: 'Send the request to 127.0.0.1 or localhost, or start the sandbox with `--public-url <url>`.',
  },
  not_found: {
    kind: 'validation',
    when: 'The resource does not exist, belongs to another app, or no operation has the path.',
    expected: 'an id that this app has',
    next: 'Check the id, and that the resource belongs to this app; named ones such as `ext_wal_alice` need --seed-data, and a reset or a restart in memory deletes everything else.',
  },
  method_not_allowed: {
    kind: 'validation',
    subject: 'the method',
    when: 'The path exists, but not with this method.',
    expected: 'a method of the header `allow`',
    next: 'Use a method that the header `allow` of the response names.',
  },
  unsupported_media_type: {
    kind: 'validation',
    subject: 'the header `content-type`',
    when: 'The body is not JSON in UTF-8, or is compressed.',
    expected: '`application/json`',
    next: 'Send the header `content-type: application/json`, and the body in UTF-8 without compression.',
  },
  payload_too_large: {
    kind: 'validation',
    subject: 'the body',
    when: 'The body is larger than the server reads, or a list in it is too long.',
    expected: 'at most 1 MB, and the limits of each list',
    next: 'Split the request; /docs names the limit of each list.',
  },
  too_many_requests: {
    kind: 'fault',
    subject: 'the rate limit',
    when: 'The app has sent more requests than its limit allows.',
    expected: 'fewer requests per minute',
    next: 'Wait for `retry-after` seconds; `--rate-limit` sets the limit of a sandbox.',
  },
  internal_error: {
    kind: 'fault',
    subject: 'the server',
    when: 'The server failed. The request changed nothing, unless its response says so.',
    expected: 'a response of the operation',
    next: 'Look into the log of the sandbox, which contains the error under this request id: this is a bug of the server.',
  },
  not_implemented: {
    kind: 'not_implemented',
    subject: 'the operation',
    when: 'This version of the server does not have the operation yet.',
    expected: 'an operation that this version has',
    next: 'Use another operation, or `custos mock`, which answers it with an example.',
  },
  unavailable: {
    kind: 'fault',
    subject: 'the server',
    when: 'A part that the request needs, such as the database or a provider, cannot be reached, or the server has too much to do.',
    expected: 'a server that can answer now',
    next: 'Repeat the request after `retry-after` seconds.',
  },
  invalid_data: {
    kind: 'validation',
    subject: 'the request',
    when: 'The path, the query, a header or the body does not match the contract, or a value cannot be used.',
    expected: 'a request as in the examples of the operation',
    next: 'Compare the request with the examples of the operation at /docs.',
  },
  invalid_request: {
    kind: 'validation',
    subject: 'the request',
    when: 'The request is not one that the operation can carry out.',
    expected: 'a request as in the examples of the operation',
    next: 'Compare the request with the examples of the operation at /docs.',
  },
  request_expired: {
    kind: 'validation',
    subject: 'the header `service-request-expiry`',
    when: 'The expiry of the request has passed, is too far ahead, or is missing where the app requires it.',
    expected: 'a time soon after now, in Unix milliseconds',
    next: 'Send a later `service-request-expiry`, in Unix milliseconds of the clock at GET /_sandbox/clock, and sign it.',
  },
  missing_or_empty_authorization_header: {
    kind: 'signature',
    when: 'The resource has an owner, and the request has no signature.',
    expected: 'a signature of the owner',
    next: 'Sign the request with a key of the owner; `data.signature_check` shows the payload.',
  },
  incorrect_quantity_of_authorization_signatures: {
    kind: 'quorum',
    when: 'The request has fewer signatures than the key quorum of the owner requires.',
    expected: 'as many signatures as the threshold of the key quorum',
    next: 'Send as many signatures as the threshold of the key quorum, separated by commas.',
  },
  zero_correct_authorization_signatures: {
    kind: 'signature',
    when: 'None of the signatures is by a key of the owner over exactly this request.',
    expected: 'a signature of the owner over the canonical payload',
    next: 'Compare what you signed with `data.signature_check.expected_payloads`, and your key with that of the owner.',
  },
  insufficient_correct_authorization_signatures: {
    kind: 'quorum',
    when: 'Some signatures are right, but fewer than the threshold of the key quorum.',
    expected: 'as many right signatures as the threshold of the key quorum',
    next: 'Sign with more keys of the key quorum.',
  },
  no_valid_user_session_keys: {
    kind: 'signature',
    when: 'The owner is a user who has no key that can sign now.',
    expected: 'a live key of the user',
    next: 'Create a user key first: POST /v1/wallets/authenticate returns one.',
  },
  user_session_keys_expired: {
    kind: 'signature',
    when: 'The request is signed with a key of the user that has expired.',
    expected: 'a key that has not expired',
    next: 'Get a new user key: POST /v1/wallets/authenticate.',
  },
  missing_mfa_enrollment: {
    kind: 'credentials',
    subject: 'the user',
    when: 'The operation needs MFA, and the user has not enrolled in it.',
    expected: 'a user with MFA',
    next: 'Enroll the user in MFA: PUT /_sandbox/apps/{app_id}/users/{user_id}.',
  },
  missing_or_invalid_mfa: {
    kind: 'credentials',
    subject: 'the MFA challenge',
    when: 'The operation needs MFA, and the request has none.',
    expected: 'a completed challenge',
    next: 'Complete the MFA challenge.',
  },
  expired_or_invalid_mfa_token: {
    kind: 'credentials',
    subject: 'the MFA token',
    when: 'The MFA token is unknown or has expired.',
    expected: 'a token of a recent challenge',
    next: 'Complete the MFA challenge again.',
  },
  allowlist_rejected: {
    kind: 'validation',
    subject: 'the user',
    when: 'The app admits only users on its allowlist, and this one is not on it.',
    expected: 'a user on the allowlist',
    next: 'Add the user to the allowlist of the app, or switch the allowlist off.',
  },
  invalid_credentials: {
    kind: 'credentials',
    subject: 'the code or the credentials',
    when: 'The code of a login is wrong, was used, or has expired.',
    expected: 'the code that was sent last',
    next: 'Check the code; GET /v1/apps/{app_id}/test_credentials returns those of test accounts.',
  },
  invalid_captcha: {
    kind: 'credentials',
    subject: 'the captcha',
    when: 'The captcha was not solved.',
    expected: 'a solved captcha',
    next: 'Solve the captcha again.',
  },
  passkey_not_registered: {
    kind: 'credentials',
    subject: 'the passkey',
    when: 'No user has registered the passkey.',
    expected: 'a registered passkey',
    next: 'Register the passkey first.',
  },
  disallowed_login_method: {
    kind: 'validation',
    subject: 'the login method',
    when: 'The app does not allow this way to log in.',
    expected: 'a login method that the app allows',
    next: 'Enable the login method in the settings of the app: PUT /_sandbox/apps/{app_id}.',
  },
  disallowed_plus_email: {
    kind: 'validation',
    subject: 'the email address',
    when: 'The app does not allow email addresses with a plus sign.',
    expected: 'an address without a plus sign',
    next: 'Use an email address without a plus sign.',
  },
  signup_disabled: {
    kind: 'validation',
    subject: 'the user',
    when: 'The app admits no new users.',
    expected: 'a user that the app has',
    next: 'Enable sign-up in the settings of the app: PUT /_sandbox/apps/{app_id}.',
  },
  missing_origin: {
    kind: 'credentials',
    subject: 'the header `origin`',
    when: 'The operation is called without the app secret, and the request names no web page.',
    expected: 'the origin of an allowed web page',
    next: 'Send the header `origin`, as browsers do.',
  },
  invalid_origin: {
    kind: 'credentials',
    subject: 'the header `origin`',
    when: 'The web page that sent the request is not one that the app allows.',
    expected: 'an origin in `allowed_origins` of the app',
    next: 'Add the origin to `allowed_origins` of the app: PUT /_sandbox/apps/{app_id}.',
  },
  invalid_native_app_id: {
    kind: 'credentials',
    subject: 'the native app',
    when: 'The native app that sent the request is not one that the app allows.',
    expected: 'a native app that the app allows',
    next: 'Add the native app to the settings of the app: PUT /_sandbox/apps/{app_id}.',
  },
  invalid_client: {
    kind: 'credentials',
    subject: 'the client',
    when: 'The OAuth client is unknown, or its secret is missing or wrong.',
    expected: 'the app id and secret',
    next: 'Send the app id and secret of the sandbox, which prints them at the start, or allow public clients with the app setting `device_flow.public_clients`.',
  },
  invalid_grant: {
    kind: 'credentials',
    subject: 'the code or token',
    when: 'The code or refresh token is unknown, was used, was revoked or has expired.',
    expected: 'a code or refresh token that was not used',
    next: 'Begin again: codes and refresh tokens can be used once, and expire.',
  },
  unsupported_grant_type: {
    kind: 'validation',
    subject: '`grant_type`',
    when: 'The server does not have the grant type.',
    expected: 'a grant type of /.well-known/oauth-authorization-server',
    next: 'Use a grant type of /.well-known/oauth-authorization-server.',
  },
  authorization_pending: {
    kind: 'validation',
    subject: 'the device code',
    when: 'The user has not decided yet.',
    expected: 'a device code that the user has approved',
    next: 'Poll again after `interval` seconds; `/device` is the page where the user decides, POST /_sandbox/device_codes/{user_code} decides in tests.',
  },
  slow_down: {
    kind: 'validation',
    subject: 'the device code',
    when: 'The client polls more often than the interval allows.',
    expected: 'a poll after the interval',
    next: 'Poll after `interval` seconds.',
  },
  access_denied: {
    kind: 'validation',
    subject: 'the device code',
    when: 'The user has denied the device.',
    expected: 'a device code that the user has approved',
    next: 'Begin again with a new device code; the user has denied this one.',
  },
  expired_token: {
    kind: 'validation',
    subject: 'the device code',
    when: 'The device code has expired before the user decided.',
    expected: 'a device code that is still valid',
    next: 'Begin again with a new device code.',
  },
  ...resourceErrorTexts,
};
