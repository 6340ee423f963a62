import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acmeApp } from '../../../mocks/apps.ts';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp, configureUser } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

describe('getUser', () => {
  const absent = { status: 404, body: { error: 'User not found' } };

  test('a user is found by the id with and without its prefix', async () => {
    await using sandbox = await startSandbox();
    const made = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'email', address: 'carol@example.com' }] },
    });
    const { id } = made.body;
    for (const user_id of [id, id.slice('did:service:'.length)]) {
      expect((await call(sandbox, 'getUser', { path: { user_id } })).body).toEqual(made.body);
    }
  });

  test('a user of another app, an unknown user and an invalid id are not found', async () => {
    await using sandbox = await startSandbox();
    const { body } = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'email', address: 'carol@example.com' }] },
    });
    const other = await asOtherApp(sandbox);
    expect(await refusal(other, 'getUser', { path: { user_id: body.id } })).toEqual(absent);
    for (const user_id of [`did:service:c${'0'.repeat(24)}`, 'did:service:', 'did:other:x', '%', `c${"'"}`]) {
      expect(await refusal(sandbox, 'getUser', { path: { user_id } })).toEqual(absent);
    }
  });
});

describe('listUsers', () => {
  async function makeUsers(sandbox: TestSandbox, count: number): Promise<string[]> {
    const ids: string[] = [];
    for (let index = 0; index < count; index += 1) {
      // Two of them in the same millisecond, the others apart.
      if (index !== 1) sandbox.clock.advance(1000);
      const { body } = await call(sandbox, 'createUser', {
        body: {
          linked_accounts: [
            { type: 'custom_auth', custom_user_id: `user-${index}` },
            { type: 'email', address: `user-${index}@example.com` },
          ],
        },
      });
      ids.push(body.id);
    }
    return ids;
  }

  test('pages go from the newest to the oldest, every user once', async () => {
    await using sandbox = await startSandbox({ seedData: false });
    const ids = await makeUsers(sandbox, 5);
    const seen: string[] = [];
    let cursor: string | null | undefined;
    do {
      const { body } = await call(sandbox, 'listUsers', {
        query: { limit: 2, ...(cursor ? { cursor } : {}) },
      });
      expect(body.data.length).toBeLessThanOrEqual(2);
      for (const user of body.data) expect(user.linked_accounts.length).toBe(2);
      seen.push(...body.data.map((user) => user.id));
      cursor = body.next_cursor;
      if (cursor !== null) expect(cursor).toBe(seen.at(-1));
    } while (cursor !== null);
    const [first, second, ...later] = ids as [string, string, ...string[]];
    expect(seen).toEqual([...later.reverse(), ...[first, second].sort().reverse()]);
    expect((await call(sandbox, 'listUsers', {})).body).toMatchObject({ next_cursor: null });
  });

  test('paging continues after the last user of a page was deleted', async () => {
    await using sandbox = await startSandbox({ seedData: false });
    const ids = await makeUsers(sandbox, 4);
    const first = await call(sandbox, 'listUsers', { query: { limit: 2 } });
    for (const user of first.body.data) await call(sandbox, 'deleteUser', { path: { user_id: user.id } });
    const rest = await call(sandbox, 'listUsers', { query: { cursor: first.body.next_cursor! } });
    expect(rest.body.data.map((user) => user.id).sort()).toEqual(ids.slice(0, 2).sort());
  });

  test('an app without users has an empty list, whatever users other apps have', async () => {
    await using sandbox = await startSandbox();
    const other = await asOtherApp(sandbox);
    expect((await call(other, 'listUsers', {})).body).toEqual({ data: [], next_cursor: null });
  });

  test('an unknown cursor, one of another app and a limit above 100 are refused', async () => {
    await using sandbox = await startSandbox({ seedData: false });
    const [id = ''] = await makeUsers(sandbox, 1);
    const other = await asOtherApp(sandbox);
    const invalid = {
      status: 400,
      body: {
        error: 'cursor: expected the `next_cursor` of a previous page',
        code: 'invalid_data',
        data: {
          issues: [
            { in: 'query', pointer: '/cursor', message: 'expected the `next_cursor` of a previous page' },
          ],
        },
      },
    };
    for (const cursor of [`did:service:c${'0'.repeat(24)}`, 'x']) {
      expect(await refusal(sandbox, 'listUsers', { query: { cursor } })).toEqual(invalid);
    }
    expect(await refusal(other, 'listUsers', { query: { cursor: id } })).toEqual(invalid);
    const { status, body } = await refusal(sandbox, 'listUsers', { query: { limit: 101 } });
    expect({ status, code: body.code, error: body.error }).toEqual({
      status: 400,
      code: 'invalid_data',
      error: 'limit: Query limit can be at maximum 100 records.',
    });
  });
});

describe('searchUsers', () => {
  const absent = { status: 404, body: { error: 'User not found' } };

  async function makeCarol(sandbox: TestSandbox) {
    const { body } = await call(sandbox, 'createUser', {
      body: {
        linked_accounts: [
          { type: 'email', address: 'carol@example.com' },
          { type: 'phone', number: '+1 202 555 0143' },
          { type: 'google_oauth', subject: '1149', email: 'C.Jones@mail.example', name: 'Carol Jönes' },
          { type: 'discord_oauth', subject: '80351110224678912', username: 'caz' },
          { type: 'wallet', chain_type: 'ethereum', address: '0xb6716976a3ebe8d39aceb04372f22ff8e6802d7a' },
        ],
        wallets: [{ chain_type: 'solana' }],
      },
    });
    return body;
  }

  test('a term finds the user by id, address, number and name, in full or by prefix', async () => {
    await using sandbox = await startSandbox();
    const carol = await makeCarol(sandbox);
    const other = await asOtherApp(sandbox);
    const solana = carol.linked_accounts.at(-1) as { address: string };
    const terms = [
      carol.id,
      carol.id.slice('did:service:'.length),
      'CAROL@example.com',
      'carol@',
      '2025550143',
      '+1 (202) 555-0143',
      '+1202555',
      'c.jones@mail.example',
      'carol jönes',
      'CAROL J',
      'caz',
      '80351110224678912',
      '0xB6716976A3EBE8D39ACEB04372F22FF8E6802D7A',
      '0xb67169',
      solana.address,
    ];
    for (const searchTerm of terms) {
      expect((await call(sandbox, 'searchUsers', { body: { searchTerm } })).body, searchTerm).toEqual(carol);
      expect(await refusal(other, 'searchUsers', { body: { searchTerm } })).toEqual(absent);
    }
    for (const searchTerm of ['arol', 'carol@example.org', ' ', '%', '_', '\ud800', 'é'.repeat(4000)]) {
      expect(await refusal(sandbox, 'searchUsers', { body: { searchTerm } }), searchTerm).toEqual(absent);
    }
  });

  test('of several matches the newest user is returned, and a full match before a prefix', async () => {
    await using sandbox = await startSandbox();
    const ids: string[] = [];
    for (const username of ['max-1', 'max', 'max-2', 'max-3']) {
      sandbox.clock.advance(1000);
      const { body } = await call(sandbox, 'createUser', {
        body: { linked_accounts: [{ type: 'github_oauth', subject: username, username, name: 'Max Power' }] },
      });
      ids.push(body.id);
    }
    const find = async (searchTerm: string) =>
      (await call(sandbox, 'searchUsers', { body: { searchTerm } })).body.id;
    expect(await find('max power')).toBe(ids[3]);
    expect(await find('max-')).toBe(ids[3]);
    expect(await find('MAX')).toBe(ids[1]);
    await call(sandbox, 'deleteUser', { path: { user_id: ids[3]! } });
    expect(await find('max-')).toBe(ids[2]);
  });

  test('changed and unlinked accounts are found by their current values only', async () => {
    await using sandbox = await startSandbox();
    const { id } = await makeCarol(sandbox);
    const link = {
      type: 'google_oauth',
      subject: '1149',
      email: 'new@mail.example',
      name: 'Carol King',
    } as const;
    await call(sandbox, 'linkUserAccount', { path: { user_id: id }, body: link });
    await call(sandbox, 'unlinkUserAccount', {
      path: { user_id: id },
      body: { type: 'email', handle: 'carol@example.com' },
    });
    expect((await call(sandbox, 'searchUsers', { body: { searchTerm: 'carol king' } })).body.id).toBe(id);
    for (const searchTerm of ['carol j', 'c.jones@mail.example', 'carol@example.com']) {
      expect(await refusal(sandbox, 'searchUsers', { body: { searchTerm } })).toEqual(absent);
    }
  });

  test('any of the identifiers may match; an invalid one matches no user', async () => {
    await using sandbox = await startSandbox();
    const carol = await makeCarol(sandbox);
    const none = { emails: [], phoneNumbers: [], walletAddresses: [] };
    const fitting = [
      { ...none, emails: ['x@example.com', 'CAROL@example.com'] },
      { ...none, phoneNumbers: ['not a number', '(202) 555-0143'] },
      { ...none, walletAddresses: ['x', '0xB6716976A3EBE8D39ACEB04372F22FF8E6802D7A'] },
      {
        ...none,
        emails: Array.from({ length: 199 }, (_, index) => `${index}@x.org`).concat('carol@example.com'),
      },
    ];
    for (const body of fitting) expect((await call(sandbox, 'searchUsers', { body })).body).toEqual(carol);
    for (const body of [none, { ...none, emails: ['', 'x'], phoneNumbers: [''], walletAddresses: [''] }]) {
      expect(await refusal(sandbox, 'searchUsers', { body })).toEqual(absent);
    }
  });

  test('a term together with a list, a missing list and an unknown field are refused', async () => {
    await using sandbox = await startSandbox();
    const bodies = [
      {},
      { searchTerm: '' },
      { searchTerm: 'x', emails: [] },
      { emails: [], phoneNumbers: [] },
      { search_term: 'x' },
    ];
    for (const body of bodies) {
      const refused = await refusal(sandbox, 'searchUsers', { body });
      expect({ status: refused.status, code: refused.body.code }).toEqual({
        status: 400,
        code: 'invalid_data',
      });
    }
  });
});

describe('custom metadata', () => {
  test('POST replaces, PATCH merges, an empty object clears', async () => {
    await using sandbox = await startSandbox();
    const { body } = await call(sandbox, 'createUser', {
      body: {
        linked_accounts: [{ type: 'custom_auth', custom_user_id: 'carol' }],
        custom_metadata: { a: 1, b: 'x' },
      },
    });
    const path = { user_id: body.id };
    const patch = (custom_metadata: Record<string, string | number | boolean>) =>
      call(sandbox, 'updateUserCustomMetadata', { path, body: { custom_metadata } });
    const post = (custom_metadata: Record<string, string | number | boolean>) =>
      call(sandbox, 'setUserCustomMetadata', { path, body: { custom_metadata } });

    expect((await patch({ b: true, c: 0.5 })).body).toEqual({
      ...body,
      custom_metadata: { a: 1, b: true, c: 0.5 },
    });
    expect((await patch({})).body.custom_metadata).toEqual({ a: 1, b: true, c: 0.5 });
    expect((await post({ d: 'é' })).body).toEqual({ ...body, custom_metadata: { d: 'é' } });
    const odd = JSON.parse('{"__proto__":"x","constructor":1,"":false,"\\u0000":"\\ud800"}');
    expect(JSON.stringify((await post(odd)).body.custom_metadata)).toBe(JSON.stringify(odd));
    const { custom_metadata: _, ...bare } = body;
    expect((await post({})).body).toEqual(bare);
    expect((await call(sandbox, 'getUser', { path })).body).toEqual(bare);
  });

  test('the limit of 1024 bytes applies to the result', async () => {
    await using sandbox = await startSandbox();
    const { body } = await call(sandbox, 'createUser', {
      body: {
        linked_accounts: [{ type: 'custom_auth', custom_user_id: 'carol' }],
        custom_metadata: { a: 'x'.repeat(500) },
      },
    });
    const path = { user_id: body.id };
    const refused = await refusal(sandbox, 'updateUserCustomMetadata', {
      path,
      body: { custom_metadata: { b: 'x'.repeat(600) } },
    });
    expect(refused).toEqual({
      status: 400,
      body: {
        error: '/custom_metadata: must have at most 1024 bytes of JSON, has 1115',
        code: 'invalid_data',
        data: {
          issues: [
            {
              in: 'body',
              pointer: '/custom_metadata',
              message: 'must have at most 1024 bytes of JSON, has 1115',
            },
          ],
        },
      },
    });
    expect((await call(sandbox, 'getUser', { path })).body).toEqual(body);
  });

  test('nested values, null and other types are refused, and so is an unknown user', async () => {
    await using sandbox = await startSandbox();
    const { body } = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'carol' }] },
    });
    for (const id of ['setUserCustomMetadata', 'updateUserCustomMetadata'] as const) {
      for (const custom_metadata of [{ a: null }, { a: {} }, { a: [] }, [], null, 'x']) {
        const refused = await refusal(sandbox, id, { path: { user_id: body.id }, body: { custom_metadata } });
        expect({ status: refused.status, code: refused.body.code }).toEqual({
          status: 400,
          code: 'invalid_data',
        });
      }
      const absent = await refusal(sandbox, id, {
        path: { user_id: 'unknown' },
        body: { custom_metadata: {} },
      });
      expect(absent).toEqual({ status: 404, body: { error: 'User not found' } });
    }
  });
});

describe('freezeUser', () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox();
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const { email, otp_code: code } = acmeApp.testAccount;
  const logIn = async () => (await call(sandbox, 'authenticatePasswordless', { body: { email, code } })).body;

  test('freezing a user blocks logins and ends sessions and keys, but not wallets and issued tokens', async () => {
    const { token, user } = await logIn();
    const path = { user_id: user.id };
    const { body: wallet } = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', owner: { user_id: user.id } },
    });
    const wallets = { user_jwt: token };
    const { body: session } = await call(sandbox, 'authenticateWallets', { body: wallets });
    const key = (session as { authorization_key: string }).authorization_key;
    const message = {
      path: { wallet_id: wallet.id },
      body: { method: 'personal_sign', params: { message: 'hi', encoding: 'utf-8' } },
    } as const;
    await call(sandbox, 'walletRpc', message, { signWith: [key] });

    sandbox.clock.advance(60_000);
    const frozenAt = Math.floor(sandbox.clock.now() / 1000);
    expect((await call(sandbox, 'freezeUser', { path })).body).toEqual({ success: true });
    expect((await call(sandbox, 'getUser', { path })).body).toMatchObject({ frozen_at: frozenAt });
    // Once more changes nothing, not even the time.
    sandbox.clock.advance(60_000);
    expect((await call(sandbox, 'freezeUser', { path })).body).toEqual({ success: true });
    expect((await call(sandbox, 'getUser', { path })).body).toMatchObject({ frozen_at: frozenAt });

    const login = await refusal(sandbox, 'authenticatePasswordless', { body: { email, code } });
    expect(login).toMatchObject({ status: 401, body: { code: 'invalid_credentials' } });
    expect(await refusal(sandbox, 'authenticateWallets', { body: wallets })).toMatchObject({ status: 401 });
    expect(await refusal(sandbox, 'walletRpc', message, { signWith: [key] })).toMatchObject({ status: 401 });
    const approval = { body: { user_code: 'BBBB-BBBB', action: 'approve' } };
    const asUser = { headers: { authorization: `Bearer ${token}` } };
    expect(await refusal(sandbox, 'verifyOauthDevice', approval, asUser)).toMatchObject({ status: 401 });
    expect((await call(sandbox, 'getWallet', { path: { wallet_id: wallet.id } })).body).toEqual(wallet);
    expect((await call(sandbox, 'listOauthGrants', {}, asUser)).body).toEqual({ data: [] });

    expect((await call(sandbox, 'unfreezeUser', { path })).body).toEqual({ success: true });
    expect((await call(sandbox, 'unfreezeUser', { path })).body).toEqual({ success: true });
    expect((await call(sandbox, 'getUser', { path })).body).not.toHaveProperty('frozen_at');
    // What ended stays ended: neither the key nor the token of the old session signs again.
    expect(await refusal(sandbox, 'walletRpc', message, { signWith: [key] })).toMatchObject({ status: 401 });
    const old = await refusal(sandbox, 'authenticateWallets', { body: wallets });
    expect(old).toMatchObject({
      status: 401,
      body: { error: expect.stringContaining('session was revoked') },
    });
    expect((await refusal(sandbox, 'verifyOauthDevice', approval, asUser)).status).toBe(401);
    const { token: next } = await logIn();
    const again = await call(sandbox, 'authenticateWallets', { body: { user_jwt: next } });
    const nextKey = (again.body as { authorization_key: string }).authorization_key;
    expect((await call(sandbox, 'walletRpc', message, { signWith: [nextKey] })).status).toBe(200);

    sandbox.clock.advance(3_600_000);
    expect((await refusal(sandbox, 'listOauthGrants', {}, asUser)).status).toBe(401);
  });

  test('a frozen user rejects no intents', async () => {
    const { token, user } = await logIn();
    const asUser = { headers: { authorization: `Bearer ${token}` } };
    const { body: wallet } = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', owner: { user_id: user.id } },
    });
    const proposal = { method: 'personal_sign', params: { message: 'hi', encoding: 'utf-8' } } as const;
    const { body: intent } = await call(sandbox, 'createWalletRpcIntent', {
      ...{ path: { wallet_id: wallet.id }, body: proposal },
    });
    const path = { intent_id: intent.intent_id };
    await call(sandbox, 'freezeUser', { path: { user_id: user.id } });
    const rejection = await refusal(sandbox, 'rejectIntent', { path }, asUser);
    expect(rejection).toMatchObject({ status: 401, body: { error: expect.stringContaining('is frozen') } });
    expect((await call(sandbox, 'getIntent', { path }, asUser)).body.status).toBe('pending');
    await call(sandbox, 'unfreezeUser', { path: { user_id: user.id } });
    expect((await refusal(sandbox, 'rejectIntent', { path }, asUser)).status).toBe(401);
    const { token: next } = await logIn();
    await call(sandbox, 'rejectIntent', { path }, { headers: { authorization: `Bearer ${next}` } });
  });

  test('the audit log records both', async () => {
    const { user } = await logIn();
    const path = { user_id: user.id };
    await call(sandbox, 'freezeUser', { path });
    await call(sandbox, 'unfreezeUser', { path });
    await sandbox.settle();
    const rows = await sandbox.database.orm.em
      .fork()
      .execute<{ entry: string }[]>('select entry from audit_records');
    const recorded = rows.map(({ entry }) => (JSON.parse(entry) as { operation: string }).operation);
    expect(recorded).toEqual(expect.arrayContaining(['freezeUser', 'unfreezeUser']));
  });

  test.each(['freezeUser', 'unfreezeUser'] as const)(
    '%s of an unknown or foreign user is a 404',
    async (id) => {
      const { user } = await logIn();
      const other = await asOtherApp(sandbox);
      for (const [app, user_id] of [
        [sandbox, 'unknown'],
        [other, user.id],
      ] as const) {
        expect(await refusal(app, id, { path: { user_id } })).toEqual({
          status: 404,
          body: { error: 'User not found' },
        });
      }
    },
  );
});

describe('the state of a user', () => {
  test("state set by the app's pages is shown, including the time of freezing", async () => {
    await using sandbox = await startSandbox();
    const made = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'carol' }] },
    });
    const path = { user_id: made.body.id };
    const shown = async () => (await call(sandbox, 'getUser', { path })).body;

    sandbox.clock.advance(60_000);
    const enrolled = await configureUser(sandbox, made.body.id, {
      mfa_methods: ['totp', 'sms', 'totp'],
      has_accepted_terms: true,
      is_guest: true,
      frozen: true,
    });
    expect(enrolled).toEqual({
      id: made.body.id,
      mfa_methods: ['totp', 'sms'],
      has_accepted_terms: true,
      is_guest: true,
      frozen: true,
    });
    const atSeconds = made.body.created_at + 60;
    const changed = {
      ...made.body,
      mfa_methods: [
        { type: 'totp', verified_at: atSeconds },
        { type: 'sms', verified_at: atSeconds },
      ],
      has_accepted_terms: true,
      is_guest: true,
      frozen_at: atSeconds,
    };
    expect(await shown()).toEqual(changed);

    sandbox.clock.advance(60_000);
    await configureUser(sandbox, made.body.id.slice('did:service:'.length), {
      mfa_methods: ['sms', 'passkey'],
      frozen: false,
    });
    const { frozen_at: _, ...thawed } = changed;
    expect(await shown()).toEqual({
      ...thawed,
      mfa_methods: [
        { type: 'sms', verified_at: atSeconds },
        { type: 'passkey', verified_at: atSeconds + 60 },
      ],
    });

    const rows = await sandbox.database.orm.em
      .fork()
      .execute<{ payload: string }[]>(
        "select payload from outbox_events where type like 'mfa.%' order by sequence",
      );
    const of = (type: string, method: string) => ({ type, user_id: made.body.id, method });
    expect(rows.map(({ payload }) => JSON.parse(payload))).toEqual([
      of('mfa.enabled', 'totp'),
      of('mfa.enabled', 'sms'),
      of('mfa.enabled', 'passkey'),
      of('mfa.disabled', 'totp'),
    ]);
  });

  test('an unknown user and an unknown state are refused', async () => {
    await using sandbox = await startSandbox();
    await expect(configureUser(sandbox, 'unknown', { is_guest: true })).rejects.toThrow('404');
    const { body } = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'carol' }] },
    });
    for (const state of [{}, { mfa_methods: ['face'] }, { is_guest: null }, { tier: 'gold' }]) {
      await expect(configureUser(sandbox, body.id, state)).rejects.toThrow('400');
    }
  });
});

describe('deleteUser', () => {
  const carol = {
    linked_accounts: [
      { type: 'email' as const, address: 'carol@example.com' },
      { type: 'phone' as const, number: '+1 202 555 0143' },
    ],
    wallets: [{ chain_type: 'ethereum' as const, external_id: 'carol' }],
  };

  test('the user is deleted, the accounts are free, and the wallet stays but can no longer sign', async () => {
    await using sandbox = await startSandbox();
    const made = await call(sandbox, 'createUser', { body: carol });
    const path = { user_id: made.body.id };
    const deleted = await call(sandbox, 'deleteUser', { path });
    expect({ status: deleted.status, body: deleted.body }).toEqual({ status: 204, body: undefined });

    const absent = { status: 404, body: { error: 'User not found' } };
    expect(await refusal(sandbox, 'getUser', { path })).toEqual(absent);
    expect(await refusal(sandbox, 'deleteUser', { path })).toEqual(absent);
    expect(await refusal(sandbox, 'searchUsers', { body: { searchTerm: 'carol@example.com' } })).toEqual(
      absent,
    );
    expect((await call(sandbox, 'listUsers', {})).body.data.map((user) => user.id)).not.toContain(
      made.body.id,
    );

    const wallet = await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_carol' } });
    expect(wallet.body.address).toBe((made.body.linked_accounts[2] as { address: string }).address);
    const signing = await refusal(sandbox, 'walletRpc', {
      path: { wallet_id: wallet.body.id },
      body: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } },
    });
    expect(signing.status).toBe(401);
    const owner = await refusal(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', owner: { user_id: made.body.id } },
    });
    expect({ status: owner.status, code: owner.body.code }).toEqual({ status: 400, code: 'invalid_data' });

    const again = await call(sandbox, 'createUser', { body: { linked_accounts: carol.linked_accounts } });
    expect(again.body.id).not.toBe(made.body.id);
    expect(again.body.linked_accounts).toHaveLength(2);
  });
});
