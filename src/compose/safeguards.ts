import type { Safeguards } from '../ports/requests.ts';

/** The behaviour that the specification publishes. These are the sandbox's defaults. */
export const publishedSafeguards: Safeguards = {
  archive_requires_owner: false,
  identity_changes: 'app_secret',
  require_request_expiry: false,
  single_use_signatures: false,
  block_test_logins: false,
  block_linking_test_accounts: false,
  strict_methods: false,
  policy_parts_require_owner: false,
};

/** The defaults of a production server. */
export const strictSafeguards: Safeguards = {
  archive_requires_owner: true,
  identity_changes: 'user_key',
  // Published clients send 15 minutes with every request. The rest allows for the differences of their clocks.
  require_request_expiry: 20 * 60,
  single_use_signatures: true,
  block_test_logins: true,
  block_linking_test_accounts: true,
  // CHOICE: off, because published rules for `*` are the only way to sign hashes under a policy, and clients use
  // them.
  strict_methods: false,
  policy_parts_require_owner: true,
};
