import { type Address, concatHex, encodeAbiParameters, getContractAddress, keccak256 } from 'viem';
import { describe, expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { configureApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

/** The frozen clock of a sandbox, in seconds. */
const now = Date.UTC(2026, 0, 1) / 1000;
const verified = { verified_at: now, first_verified_at: now, latest_verified_at: now };
const carolEmail = { type: 'email', address: 'Carol@Example.com' } as const;

test('a user is found by every given account, with metadata and without', async () => {
  await using sandbox = await startSandbox();
  const { body } = await call(sandbox, 'createUser', {
    body: {
      linked_accounts: [
        carolEmail,
        { type: 'phone', number: '(202) 555-0143' },
        { type: 'wallet', chain_type: 'ethereum', address: '0xb6716976a3ebe8d39aceb04372f22ff8e6802d7a' },
        { type: 'wallet', chain_type: 'solana', address: '6U5nJUvKrnmQH9wbFgdb6oyCa5bJLHBTecA7qF7y4LGn' },
      ],
      custom_metadata: { tier: 'gold', seats: 3, adult: true },
    },
  });
  expect(body).toEqual({
    id: expect.stringMatching(/^did:service:c[0-9a-z]{24}$/),
    created_at: now,
    is_guest: false,
    has_accepted_terms: false,
    linked_accounts: [
      { type: 'email', address: 'carol@example.com', ...verified },
      { type: 'phone', phoneNumber: '+1 202 555 0143', number: '+1 202 555 0143', ...verified },
      {
        type: 'wallet',
        address: '0xb6716976A3ebe8D39aCEB04372f22Ff8e6802D7A',
        chain_type: 'ethereum',
        wallet_client: 'unknown',
        ...verified,
      },
      {
        type: 'wallet',
        address: '6U5nJUvKrnmQH9wbFgdb6oyCa5bJLHBTecA7qF7y4LGn',
        chain_type: 'solana',
        wallet_client: 'unknown',
        ...verified,
      },
    ],
    mfa_methods: [],
    custom_metadata: { tier: 'gold', seats: 3, adult: true },
  });
  expect((await call(sandbox, 'getUser', { path: { user_id: body.id } })).body).toEqual(body);

  const plain = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'dave' }], custom_metadata: {} },
  });
  expect(plain.body).not.toHaveProperty('custom_metadata');
});

describe('every kind of account is returned as the contract defines it', () => {
  const subject = '141981764';
  const cases: { given: Record<string, unknown>; shown: Record<string, unknown> }[] = [
    {
      given: { type: 'google_oauth', subject, email: 'A@x.org', name: 'A' },
      shown: { type: 'google_oauth', subject, email: 'A@x.org', name: 'A' },
    },
    {
      given: { type: 'twitter_oauth', subject, username: 'Carol_1', name: 'Carol' },
      shown: {
        type: 'twitter_oauth',
        subject,
        username: 'Carol_1',
        name: 'Carol',
        profile_picture_url: null,
      },
    },
    {
      given: { type: 'discord_oauth', subject: '80351110224678912', username: 'carol' },
      shown: { type: 'discord_oauth', subject: '80351110224678912', username: 'carol#0', email: null },
    },
    {
      given: { type: 'github_oauth', subject, username: 'carol-x' },
      shown: { type: 'github_oauth', subject, username: 'carol-x', name: null, email: null },
    },
    {
      given: { type: 'spotify_oauth', subject },
      shown: { type: 'spotify_oauth', subject, email: null, name: null },
    },
    {
      given: { type: 'instagram_oauth', subject, username: 'carol.x' },
      shown: { type: 'instagram_oauth', subject, username: 'carol.x' },
    },
    {
      given: { type: 'tiktok_oauth', subject, username: 'carolx', name: null },
      shown: { type: 'tiktok_oauth', subject, username: 'carolx', name: null },
    },
    {
      given: { type: 'line_oauth', subject, name: 'Carol' },
      shown: { type: 'line_oauth', subject, name: 'Carol', email: null, profile_picture_url: null },
    },
    { given: { type: 'twitch_oauth', subject }, shown: { type: 'twitch_oauth', subject, username: null } },
    { given: { type: 'apple_oauth', subject }, shown: { type: 'apple_oauth', subject, email: null } },
    {
      given: { type: 'linkedin_oauth', subject, vanityName: 'carol-x' },
      shown: { type: 'linkedin_oauth', subject, email: null, vanity_name: 'carol-x' },
    },
    {
      given: {
        type: 'farcaster',
        fid: 4112,
        owner_address: '0xb6716976a3ebe8d39aceb04372f22ff8e6802d7a',
        username: 'carol',
        profile_picture_url: 'https://x.org/c.png',
      },
      shown: {
        type: 'farcaster',
        fid: 4112,
        owner_address: '0xb6716976A3ebe8D39aCEB04372f22Ff8e6802D7A',
        username: 'carol',
        profile_picture_url: 'https://x.org/c.png',
        profile_picture: 'https://x.org/c.png',
      },
    },
    {
      given: { type: 'telegram', telegram_user_id: '77', username: 'carol' },
      shown: {
        type: 'telegram',
        telegram_user_id: '77',
        username: 'carol',
        first_name: null,
        last_name: null,
        photo_url: null,
      },
    },
    {
      given: { type: 'custom_auth', custom_user_id: 'carol' },
      shown: { type: 'custom_auth', custom_user_id: 'carol' },
    },
    {
      given: {
        type: 'passkey',
        credential_id: 'Mlx5',
        credential_username: 'carol',
        credential_public_key: 'pQEC',
        credential_device_type: 'multiDevice',
      },
      shown: { type: 'passkey', credential_id: 'Mlx5', public_key: 'pQEC', enrolled_in_mfa: false },
    },
  ];
  test.each(cases)(
    'every kind of account is returned as the contract defines it: $given.type',
    async ({ given, shown }) => {
      await using sandbox = await startSandbox({ seedData: false });
      const { body } = await call(sandbox, 'createUser', { body: { linked_accounts: [given] } as never });
      expect(body.linked_accounts).toEqual([{ ...shown, ...verified }]);
    },
  );
});

describe('wallets created with the user', () => {
  test('wallets created with the user are owned by the user, have their policy, and are listed with an index per chain type', async () => {
    await using sandbox = await startSandbox();
    const { body } = await call(sandbox, 'createUser', {
      body: {
        linked_accounts: [carolEmail],
        wallets: [
          { chain_type: 'ethereum', external_id: 'carol-main' },
          { chain_type: 'ethereum' },
          { chain_type: 'tron' },
          { chain_type: 'spark' },
        ],
      },
    });
    const [, ...wallets] = body.linked_accounts as { id: string; address: string; public_key?: string }[];
    const embedded = {
      type: 'wallet',
      id: expect.stringMatching(/^[a-z0-9]{24}$/),
      address: expect.any(String),
      wallet_client: 'service',
      wallet_client_type: 'service',
      connector_type: 'embedded',
      recovery_method: 'service-v2',
      imported: false,
      delegated: false,
      ...verified,
    };
    expect(wallets).toEqual([
      { ...embedded, chain_type: 'ethereum', chain_id: 'eip155:1', wallet_index: 0 },
      { ...embedded, chain_type: 'ethereum', chain_id: 'eip155:1', wallet_index: 1 },
      {
        ...embedded,
        chain_type: 'tron',
        chain_id: 'tron:0x2b6653dc',
        wallet_index: 0,
        public_key: expect.stringMatching(/^0[23][0-9a-f]{64}$/),
      },
    ]);
    const owned = await call(sandbox, 'listWallets', { query: { user_id: body.id } });
    expect(owned.body.data.map((wallet) => wallet.chain_type).sort()).toEqual([
      'ethereum',
      'ethereum',
      'spark',
      'tron',
    ]);
    expect(new Set(owned.body.data.map((wallet) => wallet.owner_id)).size).toBe(1);
    const main = await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_carol-main' } });
    expect(main.body.address).toBe(wallets[0]?.address);
  });

  test('wallets created with the user can have a smart wallet at the address where the factory will deploy it', async () => {
    await using sandbox = await startSandbox();
    const body = {
      linked_accounts: [carolEmail],
      wallets: [{ chain_type: 'ethereum' as const, create_smart_wallet: true }],
    };
    const first = await call(sandbox, 'createUser', { body });
    const [, embedded, smart] = first.body.linked_accounts as { address: Address }[];
    expect(smart).toEqual({
      type: 'smart_wallet',
      address: predict(embedded!.address, {
        factory: '0x0000000000400CdFef5E2714E63d8040b700BC24',
        implementation: '0x8E8e658E22B12ada97B402fF0b044D6A325013C7',
      }),
      smart_wallet_type: 'light_account',
      smart_wallet_version: '2.0.0',
      ...verified,
    });

    const factory = '0x00000000000000000000000000000000000000f1';
    const implementation = '0x00000000000000000000000000000000000000f2';
    await configureApp(sandbox, {
      smart_account_factory: {
        factory_address: factory,
        implementation_address: implementation,
        version: '2.1.0',
      },
    });
    const second = await call(sandbox, 'createUser', {
      body: { ...body, linked_accounts: [{ type: 'email', address: 'dave@example.com' }] },
    });
    const [, other, configured] = second.body.linked_accounts as { address: Address }[];
    expect(configured).toMatchObject({
      address: predict(other!.address, { factory, implementation }),
      smart_wallet_version: '2.1.0',
    });
  });

  // viem's CREATE2 with the formula of the factory's source code.
  function predict(
    owner: Address,
    { factory, implementation }: { factory: Address; implementation: Address },
  ) {
    return getContractAddress({
      opcode: 'CREATE2',
      from: factory,
      salt: keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [owner, 0n])),
      bytecode: concatHex([
        '0x603d3d8160223d3973',
        implementation,
        '0x60095155f3363d3d373d3d363d7f360894a13ba1a3210667c828492db98dca3e2076',
        '0xcc3735a920a3ca505d382bbc545af43d6000803e6038573d6000fd5b3d6000f3',
      ]),
    });
  }
});

describe('refused, and nothing is stored', () => {
  test.each([
    {
      fault: 'an invalid phone number',
      account: { type: 'phone', number: '12' },
      pointer: '/linked_accounts/1/number',
    },
    {
      fault: 'an invalid Ethereum address',
      account: {
        type: 'wallet',
        chain_type: 'ethereum',
        address: '6U5nJUvKrnmQH9wbFgdb6oyCa5bJLHBTecA7qF7y4LGn',
      },
      pointer: '/linked_accounts/1/address',
    },
    {
      fault: 'a Solana address of another length',
      account: { type: 'wallet', chain_type: 'solana', address: '1'.repeat(33) },
      pointer: '/linked_accounts/1/address',
    },
    {
      fault: 'a Farcaster account of no address',
      account: { type: 'farcaster', fid: 1, owner_address: '0x1' },
      pointer: '/linked_accounts/1/owner_address',
    },
  ])('refused, and nothing is stored: $fault', async ({ account, pointer }) => {
    await using sandbox = await startSandbox();
    const { status, body } = await refusal(sandbox, 'createUser', {
      body: { linked_accounts: [carolEmail, account] },
    });
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_data' });
    expect(body.data).toEqual({ issues: [{ in: 'body', pointer, message: expect.any(String) }] });
    await expectNoCarol(sandbox);
  });

  test('two accounts of a kind that is limited to one', async () => {
    await using sandbox = await startSandbox();
    const { status, body } = await refusal(sandbox, 'createUser', {
      body: { linked_accounts: [carolEmail, { type: 'email', address: 'c@x.org' }] },
    });
    expect({ status, body }).toEqual({
      status: 400,
      body: {
        error: 'the user already has an account of this type',
        code: 'cannot_link_more_of_type',
        data: {
          issues: [
            {
              in: 'body',
              pointer: '/linked_accounts/1',
              message: 'a user has at most one account of type `email`',
            },
          ],
        },
      },
    });
    await expectNoCarol(sandbox);
  });

  test('the same wallet twice', async () => {
    await using sandbox = await startSandbox();
    const wallet = {
      type: 'wallet',
      chain_type: 'ethereum',
      address: '0xb6716976a3ebe8d39aceb04372f22ff8e6802d7a',
    };
    const again = { ...wallet, address: '0xb6716976A3ebe8D39aCEB04372f22Ff8e6802D7A' };
    const { status, body } = await refusal(sandbox, 'createUser', {
      body: { linked_accounts: [wallet, again] },
    });
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_data' });
  });

  test('an account of another user, in any spelling', async () => {
    await using sandbox = await startSandbox();
    await call(sandbox, 'createUser', { body: { linked_accounts: [carolEmail] } });
    const { status, body } = await refusal(sandbox, 'createUser', {
      body: {
        linked_accounts: [
          { type: 'custom_auth', custom_user_id: 'dave' },
          { type: 'email', address: 'cArOl@example.com' },
        ],
      },
    });
    expect({ status, body }).toEqual({
      status: 409,
      body: { error: 'the account is linked to another user', code: 'linked_to_another_user' },
    });
    const dave = await refusal(sandbox, 'getUserByCustomAuthID', { body: { custom_user_id: 'dave' } });
    expect(dave).toEqual({ status: 404, body: { error: 'User not found' } });
  });

  test('the external id of another wallet', async () => {
    await using sandbox = await startSandbox();
    const body = { linked_accounts: [carolEmail], wallets: [{ chain_type: 'solana', external_id: 'main' }] };
    await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', external_id: 'main' } });
    const refused = await refusal(sandbox, 'createUser', { body });
    expect({ status: refused.status, code: refused.body.code }).toEqual({
      status: 409,
      code: 'resource_conflict',
    });
    await expectNoCarol(sandbox);
  });

  test.each([
    {
      fault: 'a policy that is not there',
      wallet: { chain_type: 'ethereum', policy_ids: ['a'.repeat(24)] },
      pointer: expect.stringMatching(/^\/wallets\/1\/policy_ids/),
    },
    {
      fault: 'a signer that is not there',
      wallet: { chain_type: 'ethereum', additional_signers: [{ signer_id: 'a'.repeat(24) }] },
      pointer: '/wallets/1/additional_signers',
    },
    {
      fault: 'a smart wallet on Solana',
      wallet: { chain_type: 'solana', create_smart_wallet: true },
      pointer: '/wallets/1/create_smart_wallet',
    },
  ])('refused, and nothing is stored: $fault', async ({ wallet, pointer }) => {
    await using sandbox = await startSandbox();
    const { status, body } = await refusal(sandbox, 'createUser', {
      body: { linked_accounts: [carolEmail], wallets: [{ chain_type: 'solana' }, wallet] },
    });
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_data' });
    expect(body.data).toEqual({ issues: [{ in: 'body', pointer, message: expect.any(String) }] });
    await expectNoCarol(sandbox);
  });

  test('metadata of 1025 bytes; 1024 are stored', async () => {
    await using sandbox = await startSandbox();
    // {"k":"…"} is eight bytes and the text.
    const ofBytes = (bytes: number) => ({ k: 'é'.repeat((bytes - 8) / 2) + (bytes % 2 === 0 ? '' : 'e') });
    const { status, body } = await refusal(sandbox, 'createUser', {
      body: { linked_accounts: [carolEmail], custom_metadata: ofBytes(1025) },
    });
    expect({ status, data: body.data }).toEqual({
      status: 400,
      data: {
        issues: [
          {
            in: 'body',
            pointer: '/custom_metadata',
            message: 'must have at most 1024 bytes of JSON, has 1025',
          },
        ],
      },
    });
    const stored = await call(sandbox, 'createUser', {
      body: { linked_accounts: [carolEmail], custom_metadata: ofBytes(1024) },
    });
    expect(stored.body.custom_metadata).toEqual(ofBytes(1024));
  });

  async function expectNoCarol(sandbox: TestSandbox): Promise<void> {
    const { status } = await refusal(sandbox, 'getUserByEmailAddress', {
      body: { address: carolEmail.address },
    });
    expect(status).toBe(404);
  }
});
