import type { ErrorCode } from '../../errors.ts';
import type { Why } from '../../ports/requests.ts';

type Advice = readonly [Why['kind'], string];

/** The advice for each error code when no rule gives a more precise one. */
export const adviceFor: Readonly<Record<ErrorCode, Advice>> = {
  access_denied: ['validation', 'begin again with a new device code; the user has denied this one'],
  account_transfer_required: [
    'validation',
    'the account belongs to another user; `custos users take-over` transfers it, or link another account',
  ],
  allowlist_rejected: ['validation', 'add the user to the allowlist of the app, or switch the allowlist off'],
  authorization_key_has_associated_wallets: [
    'validation',
    'first give the resources of this key quorum another owner, and remove it from signers and other quorums',
  ],
  authorization_pending: [
    'validation',
    'poll again after `interval` seconds; `/device` is the page where the user decides, POST /_sandbox/device_codes/{user_code} decides in tests',
  ],
  cannot_link_more_of_type: ['validation', 'unlink the account of this type first'],
  cannot_unlink_embedded_wallet: [
    'validation',
    'embedded wallets stay with their user; archive the wallet instead',
  ],
  cannot_unlink_sole_account: ['validation', 'link another account first'],
  compliance_blocked: ['validation', 'use another address or user; this one is blocked'],
  disallowed_login_method: [
    'validation',
    'enable the login method in the settings of the app: PUT /_sandbox/apps/{app_id}',
  ],
  disallowed_plus_email: ['validation', 'use an email address without a plus sign'],
  expired_or_invalid_mfa_token: ['credentials', 'complete the MFA challenge again'],
  expired_token: ['validation', 'begin again with a new device code'],
  failed_to_fetch_jwks_uri_document: [
    'validation',
    'check that the JWKS URL is reachable from this machine and serves JSON',
  ],
  feature_not_enabled: [
    'validation',
    'enable the feature in the settings of the app: PUT /_sandbox/apps/{app_id}',
  ],
  foreign_host: [
    'credentials',
    'send the request to 127.0.0.1 or localhost, or start the sandbox with `--public-url <url>`',
  ],
  https_required: ['credentials', 'use https, or start the sandbox with `--plain-http`'],
  incorrect_quantity_of_authorization_signatures: [
    'quorum',
    'send as many signatures as the threshold of the key quorum, separated by commas',
  ],
  insufficient_correct_authorization_signatures: ['quorum', 'sign with more keys of the key quorum'],
  insufficient_funds: ['chain', 'fund the wallet: POST /_sandbox/faucet'],
  internal_error: [
    'fault',
    'a bug of the server: the log of the sandbox contains the error under this request id',
  ],
  invalid_aggregation_format: ['validation', 'compare the body with the examples of the operation at /docs'],
  invalid_app_credentials: [
    'credentials',
    'the sandbox prints its app id and secret at the start, and `--ready-file` writes them to a file',
  ],
  invalid_captcha: ['credentials', 'solve the captcha again'],
  invalid_client: [
    'credentials',
    'send the app id and secret of the sandbox, which prints them at the start, or allow public clients with the app setting `device_flow.public_clients`',
  ],
  invalid_credentials: [
    'credentials',
    'check the code; GET /v1/apps/{app_id}/test_credentials returns those of test accounts',
  ],
  invalid_data: ['validation', 'compare the request with the examples of the operation at /docs'],
  invalid_grant: ['credentials', 'begin again: codes and refresh tokens can be used once, and expire'],
  invalid_native_app_id: [
    'credentials',
    'add the native app to the settings of the app: PUT /_sandbox/apps/{app_id}',
  ],
  invalid_origin: [
    'credentials',
    'add the origin to `allowed_origins` of the app: PUT /_sandbox/apps/{app_id}',
  ],
  invalid_policy_format: [
    'validation',
    'compare the policy with the examples at /docs; `custos policy lint` checks it',
  ],
  invalid_request: ['validation', 'compare the request with the examples of the operation at /docs'],
  invalid_solana_transaction: [
    'validation',
    'send a serialized transaction in base64 whose fee payer is the wallet',
  ],
  invalid_state: ['validation', 'read the resource: its state does not allow this operation'],
  linked_account_not_found: ['validation', 'read the user: the account is not linked'],
  linked_to_another_user: ['validation', 'find the user with this account, or link another account'],
  max_accounts_reached: ['validation', 'delete an account first'],
  max_apps_reached: ['validation', 'delete an app first'],
  max_denylist_entries_reached: ['validation', 'delete an entry first'],
  max_test_accounts_reached: ['validation', 'delete a test account first'],
  method_not_allowed: ['validation', 'the header `allow` names the methods of this path'],
  missing_mfa_enrollment: [
    'credentials',
    'enroll the user in MFA: PUT /_sandbox/apps/{app_id}/users/{user_id}',
  ],
  missing_or_empty_authorization_header: [
    'signature',
    'sign the request with a key of the owner; `data.signature_check` shows the payload',
  ],
  missing_or_invalid_mfa: ['credentials', 'complete the MFA challenge'],
  missing_or_invalid_service_account_id: ['credentials', 'send the id of the account in its header'],
  missing_or_invalid_service_app_id: ['credentials', 'send the app id in the header `service-app-id` too'],
  missing_or_invalid_service_client_id: ['credentials', 'send the id of the client in its header'],
  missing_or_invalid_token: [
    'credentials',
    'send the app id and secret with HTTP Basic; the sandbox prints both at the start',
  ],
  missing_origin: ['credentials', 'send the header `origin`, as browsers do'],
  no_valid_user_session_keys: [
    'signature',
    'the user needs a key first: POST /v1/wallets/authenticate returns one',
  ],
  not_found: [
    'validation',
    'check the id, and that the resource belongs to this app; named ones such as `ext_wal_alice` need --seed-data, and a reset or a restart in memory deletes everything else',
  ],
  not_implemented: [
    'not_implemented',
    'this version does not have the operation yet; `custos mock` answers it with an example',
  ],
  not_supported: ['validation', 'the message says what is not supported; /docs lists what is'],
  operator_role_required: ['credentials', 'ask an admin of the app: custos apps operators role'],
  passkey_not_registered: ['credentials', 'register the passkey first'],
  payload_too_large: ['validation', 'split the request; /docs names the limit of each list'],
  policy_violation: ['policy', 'GET /_sandbox/policies/traces/{trace_id} shows how each rule was evaluated'],
  request_expired: [
    'validation',
    'send a later `service-request-expiry`, in Unix milliseconds of the clock at GET /_sandbox/clock',
  ],
  resource_already_exists: ['validation', 'read the existing resource, or use another id'],
  resource_conflict: ['validation', 'read the resource again and repeat the change'],
  signup_disabled: ['validation', 'enable sign-up in the settings of the app: PUT /_sandbox/apps/{app_id}'],
  slow_down: ['validation', 'poll after `interval` seconds'],
  too_many_requests: ['fault', 'wait for `retry-after` seconds; `--rate-limit` sets the limit of a sandbox'],
  transaction_broadcast_failure: ['chain', 'the error message has the response of the chain'],
  transaction_execution_failure: [
    'chain',
    'the simulation of the transaction reverted; the error message has the reason',
  ],
  transaction_limit_reached: [
    'chain',
    'wait until pending transactions are confirmed: POST /_sandbox/blocks',
  ],
  unavailable: ['fault', 'repeat the request after `retry-after` seconds'],
  unsupported_grant_type: ['validation', 'use a grant type of /.well-known/oauth-authorization-server'],
  unsupported_media_type: ['validation', 'send the header `content-type: application/json`'],
  user_does_not_exist: ['validation', 'create the user first'],
  user_has_not_delegated_wallet: ['credentials', 'the user has to delegate the wallet first'],
  user_session_keys_expired: ['signature', 'get a new user key: POST /v1/wallets/authenticate'],
  wallet_entity_already_set: ['validation', 'the wallet keeps its entity; create another wallet'],
  wallet_entity_assignment_failed: ['fault', 'the wallet exists; assign it with another request'],
  wallet_entity_limit_exceeded: ['validation', 'use another organization'],
  zero_correct_authorization_signatures: [
    'signature',
    'compare what you signed with `data.signature_check.expected_payloads`',
  ],
};
