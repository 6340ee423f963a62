import { afterAll, beforeAll, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import { getVerifier } from '../../../src/domain/base/audit/audit-keys.ts';
import { getSignedCheckpoint } from '../../../src/domain/base/audit/audit-tree.ts';
import { openCheckpoint } from '../../../src/engine/crypto/tlog/checkpoint.ts';
import { ApiError } from '../../../src/errors.ts';
import type { AuditRecord, AuditTrail } from '../../../src/ports/audit.ts';
import { createNotes } from '../../../src/ports/operation-context.ts';
import { recordDenials } from '../../../src/server/audit.ts';
import type { RequestState } from '../../../src/server/request-state.ts';
import { attempt, call } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

interface Entry extends Record<string, unknown> {
  readonly request_id?: string;
  readonly by: Record<string, unknown>;
}

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox.close());

const fork = () => sandbox.database.orm.em.fork();

async function entries(): Promise<Entry[]> {
  await sandbox.settle();
  const rows = await fork().execute<{ entry: string }[]>(
    'select entry from audit_records order by leaf_index',
  );
  return rows.map(({ entry }) => JSON.parse(entry) as Entry);
}

async function recordsOf({ headers }: { headers: Readonly<Record<string, unknown>> }): Promise<Entry[]> {
  return (await entries()).filter(({ request_id }) => request_id === headers['x-request-id']);
}

test('says who did what: a signed change, a signature, and the broadcast of a transfer by a job', async () => {
  const created = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', owner: { public_key: aliceKey.publicKey } },
  });
  const wallet_id = created.body.id;
  expect(await recordsOf(created)).toEqual([
    {
      ...{ app_id: sandbox.appId, at_ms: sandbox.clock.now(), operation: 'createWallet', version: 1 },
      by: { app_id: sandbox.appId, kind: 'app_secret' },
      ...{ decision: 'allow', status: 200, request: expect.any(String) },
      ids: { id: wallet_id, owner_id: created.body.owner_id },
      request_id: created.headers['x-request-id'],
    },
  ]);
  const signed = await call(
    sandbox,
    'walletRpc',
    {
      path: { wallet_id },
      body: { method: 'personal_sign', params: { message: 'my diagnosis', encoding: 'utf-8' } } as never,
    },
    { signWith: [aliceKey.privateKey] },
  );
  const key = Buffer.from(aliceKey.publicKey, 'base64');
  const digest = await crypto.subtle.digest('SHA-256', key);
  expect(await recordsOf(signed)).toMatchObject([
    { operation: 'walletRpc', ids: { wallet_id }, by: { signers: [Buffer.from(digest).toString('hex')] } },
  ]);
  const read = await call(sandbox, 'getWallet', { path: { wallet_id } });
  expect(await recordsOf(read)).toEqual([]);
});

test('has denials: by a policy, for lack of a signature, and of a wrong secret', async () => {
  const rules = [{ name: 'None', method: '*', action: 'DENY', conditions: [] }];
  const policy = await call(sandbox, 'createPolicy', {
    body: { version: '1.0', name: 'None', chain_type: 'ethereum', rules } as never,
  });
  const wallet = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', policy_ids: [policy.body.id], owner: { public_key: aliceKey.publicKey } },
  });
  const input = {
    path: { wallet_id: wallet.body.id },
    body: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as never,
  };
  const unsigned = await attempt(sandbox, 'walletRpc', input);
  expect(await recordsOf(unsigned)).toMatchObject([
    { decision: 'deny', status: 401, code: 'missing_or_empty_authorization_header', operation: 'walletRpc' },
  ]);
  const denied = await attempt(sandbox, 'walletRpc', input, { signWith: [aliceKey.privateKey] });
  expect(await recordsOf(denied)).toMatchObject([
    { decision: 'deny', status: 400, code: 'policy_violation', ids: { wallet_id: wallet.body.id } },
  ]);
  const stranger = { authorization: `Basic ${Buffer.from(`${sandbox.appId}:wrong`).toString('base64')}` };
  const refused = await attempt(sandbox, 'createWallet', { body: {} as never }, { headers: stranger });
  expect(await recordsOf(refused)).toMatchObject([
    {
      ...{ decision: 'deny', status: 401, code: 'invalid_app_credentials', operation: 'createWallet' },
      by: { kind: 'anonymous', claimed_app_id: sandbox.appId },
    },
  ]);
  const invalid = await attempt(sandbox, 'createWallet', { body: {} as never });
  const absent = await attempt(sandbox, 'archiveWallet', { path: { wallet_id: 'absent' } });
  expect([invalid.status, absent.status]).toEqual([400, 404]);
  expect([...(await recordsOf(invalid)), ...(await recordsOf(absent))]).toEqual([]);
});

test('a denial that cannot be recorded leaves no event and no stored response', async () => {
  const rules = [{ name: 'None', method: '*', action: 'DENY', conditions: [] }];
  const policy = await call(sandbox, 'createPolicy', {
    body: { version: '1.0', name: 'None', chain_type: 'ethereum', rules } as never,
  });
  const wallet = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', policy_ids: [policy.body.id] },
  });
  const sign = () =>
    attempt(
      sandbox,
      'walletRpc',
      {
        path: { wallet_id: wallet.body.id },
        body: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as never,
      },
      { idempotencyKey: 'denied without a record' },
    );
  const denials = async () => {
    const sql = 'select count(*) as count from outbox_events where type = ? and resource_id = ?';
    const rows = await fork().execute<{ count: number }[]>(sql, ['wallet.use_denied', wallet.body.id]);
    return rows[0]!.count;
  };
  await fork().execute(
    "create trigger full before insert on audit_pending begin select raise(abort, 'full'); end",
  );
  expect((await sign()).status).toBe(503);
  expect(await denials()).toBe(0);
  await fork().execute('drop trigger full');
  const denied = await sign();
  expect([denied.status, denied.headers['idempotent-replayed']]).toEqual([400, undefined]);
  expect(await denials()).toBe(1);
  expect(await recordsOf(denied)).toMatchObject([{ decision: 'deny', code: 'policy_violation' }]);
});

test('repeats of one idempotent request are one record', async () => {
  const create = () =>
    call(sandbox, 'createWallet', { body: { chain_type: 'solana' } }, { idempotencyKey: 'audited' });
  const [first, second] = [await create(), await create()];
  expect(second.body).toEqual(first.body);
  const all = (await entries()).filter(({ ids }) => (ids as { id?: string }).id === first.body.id);
  expect(all).toHaveLength(1);
});

test('has no personal data and no secret, and its checkpoint is signed', async () => {
  await call(sandbox, 'createUser', {
    body: {
      linked_accounts: [
        { type: 'email', address: 'alice.in.wonderland@example.com' },
        { type: 'custom_auth', custom_user_id: 'customer-4711' },
        { type: 'phone', number: '+12015550123' } as never,
      ],
      custom_metadata: { nickname: 'Rabbit' },
    },
  });
  const text = JSON.stringify(await entries());
  const secrets = ['wonderland', '4711', '2015550123', 'Rabbit', 'diagnosis', sandbox.appSecret];
  for (const each of [...secrets, aliceKey.publicKey]) expect(text).not.toContain(each);
  const verifier = await getVerifier(fork());
  const checkpoint = openCheckpoint((await getSignedCheckpoint(fork()))!, verifier!);
  expect(checkpoint?.size).toBe((await entries()).length);
});

test('survives a reset as the log of the state after the start', async () => {
  await sandbox.reset();
  expect(await entries()).toEqual([]);
  const created = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  expect(await recordsOf(created)).toHaveLength(1);
});

test('while the disk is full, nothing happens without its record', async () => {
  const count = async (table: string) =>
    (await fork().execute<{ n: number }[]>(`select count(*) as n from ${table}`))[0]!.n;
  const [{ page_count: pages = 0 } = {}] =
    await fork().execute<{ page_count: number }[]>('pragma page_count');
  const records = async () => (await count('audit_pending')) + (await count('audit_records'));
  const [wallets, recordsBefore] = [await count('wallets'), await records()];
  await fork().execute(`pragma max_page_count = ${pages}`);
  let made = 0;
  let refusal: Awaited<ReturnType<typeof attempt>>;
  do {
    refusal = await attempt(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    made += refusal.status === 200 ? 1 : 0;
  } while (refusal.status === 200 && made < 500);
  expect(refusal).toMatchObject({ status: 503, body: { error: 'the database is unavailable' } });
  await fork().execute('pragma max_page_count = 1073741823');
  expect([(await count('wallets')) - wallets, (await records()) - recordsBefore]).toEqual([made, made]);
  await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
});

test('wrong credentials of strangers fill it only so fast; what was left out is counted', async () => {
  const written: AuditRecord[] = [];
  let nowMs = 0;
  let isDown = false;
  const audit: AuditTrail = {
    async record(_, record) {
      if (isDown) throw new ApiError('unavailable');
      written.push(record);
    },
    digest: () => '',
  };
  const openUnit = async () => ({
    ...{ em: {} as never, notes: createNotes(), watches: [] },
    ...{ commit: async () => {}, rollback: async () => {} },
  });
  const record = recordDenials({ audit, openUnit, machine: { now: () => nowMs } });
  const deny = (app?: { id: string }) =>
    record(
      {
        id: 'r',
        app,
        headers: { authorization: 'Basic …' },
        nowMs,
        rawBody: Buffer.alloc(0),
      } as unknown as RequestState,
      new ApiError('invalid_app_credentials'),
    );
  for (let time = 0; time < 200; time += 1) await deny();
  expect(written).toHaveLength(50);
  // Those that a credential identifies are all recorded, with the number of the others.
  await deny({ id: 'app' });
  expect(written.at(-1)).toMatchObject({ omitted: 150 });
  for (let time = 0; time < 3; time += 1) await deny();
  nowMs = 1000;
  isDown = true;
  await expect(deny()).rejects.toMatchObject({ code: 'unavailable' });
  isDown = false;
  await deny();
  expect(written.at(-1)).toMatchObject({ omitted: 3 });
});
