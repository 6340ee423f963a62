const testAccount = {
  id: 'custostestaccount00000000',
  email: 'test-4010@example.com',
  phone_number: '+1 555 555 4010',
  otp_code: '401040',
} as const;

/** The routes of crypto deposit accounts that the example of the document names. */
const depositConfig = {
  id: 'j3h2jsj9vzcghv28s3w1prka',
  routes: [{ source: { mode: 'all' }, destination: { asset: 'usdc', chain: 'base' } }],
} as const;

/** The app of every sandbox. Its credentials are public, so that the examples in the README work unchanged. */
export const acmeApp = {
  id: 'custossandboxapp000000000',
  name: 'Acme',
  secret: 'custos_sandbox_app_secret_for_local_use_only',
  testAccount,
  settings: {
    test_accounts: [testAccount],
    device_flow: { public_clients: true },
    deposit_configs: [depositConfig],
  },
} as const;
