import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { attempt, call } from '../../support/call.ts';
import { asOtherApp, control } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
let walletId: string;
let userId: string;
let policyId: string;
let traceId: string;
const secrets: Record<string, string> = {};

interface OperatorRecord {
  readonly sequence: number;
  readonly operator_name: string | null;
  readonly action: string;
  readonly targets: Record<string, string>;
  readonly result: string;
}

const rules = [{ name: 'None', method: '*', action: 'DENY', conditions: [] }];

async function admin(
  method: string,
  path: string,
  { secret, body }: { secret?: string | undefined; body?: object | undefined } = {},
) {
  const response = await fetch(`${sandbox.adminUrl}${path}`, {
    method,
    headers: {
      ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const recordsOf = async (appId: string): Promise<readonly OperatorRecord[]> =>
  (await control<{ data: OperatorRecord[] }>(sandbox, 'GET', `apps/${appId}/operator_records?limit=100`))
    .data;

const denied = {
  ...{ operation: 'getPolicyTrace', decision: 'deny', code: 'missing_or_invalid_token', status: 401 },
  ...{ by: { kind: 'operator', origin: 'admin_port' }, ids: {}, version: 1 },
  ...{ at_ms: expect.any(Number), request_id: expect.any(String) },
};

/** What the audit log has of secrets that are not those of operators. */
async function wrongSecrets(): Promise<object[]> {
  await sandbox.settle();
  const rows = await sandbox.database.orm.em
    .fork()
    .execute<{ entry: string }[]>('select entry from audit_records where entry like \'%"admin_port"%\'');
  return rows
    .map(({ entry }) => JSON.parse(entry) as { decision: string; code?: string })
    .filter(({ decision, code }) => decision === 'deny' && code === 'missing_or_invalid_token');
}

async function addOperator(appId: string, name: string, role: string): Promise<string> {
  const { secret } = await control<{ secret: string }>(sandbox, 'POST', `apps/${appId}/operators`, {
    name,
    role,
  });
  return secret;
}

beforeAll(async () => {
  sandbox = await startSandbox({ adminPort: 0 });
  const policy = await call(sandbox, 'createPolicy', {
    body: { version: '1.0', name: 'None', chain_type: 'ethereum', rules } as never,
  });
  policyId = policy.body.id;
  const wallet = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', policy_ids: [policyId] },
  });
  walletId = wallet.body.id;
  const denied = await attempt(sandbox, 'walletRpc', {
    path: { wallet_id: walletId },
    body: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as never,
  });
  traceId = String(denied.headers['x-request-id']);
  const user = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'email', address: 'new@example.com' }] },
  });
  userId = user.body.id;
});
afterAll(() => sandbox.close());

describe('the admin port', () => {
  test('the admin port works without a credential while there is no operator, and cannot add the first one', async () => {
    expect(await admin('GET', `/policies/traces/${traceId}`)).toMatchObject({ status: 200 });
    const path = `/apps/${sandbox.appId}/operators`;
    const added = await admin('POST', path, { body: { name: 'Mallory', role: 'admin' } });
    expect(added).toMatchObject({ status: 401, body: { code: 'missing_or_invalid_token' } });
    expect(await admin('GET', path)).toEqual({ status: 200, body: { data: [] } });
  });

  test('the admin port requires an operator from the first one on', async () => {
    for (const role of ['viewer', 'developer', 'admin']) {
      secrets[role] = await addOperator(sandbox.appId, `The ${role}`, role);
    }
    secrets.outsider = await addOperator((await asOtherApp(sandbox)).appId, 'The outsider', 'admin');
    for (const secret of [undefined, 'service_operator_secret_wrong', sandbox.appSecret]) {
      const refused = await admin('GET', `/policies/traces/${traceId}`, { secret });
      expect(refused).toMatchObject({ status: 401, body: { code: 'missing_or_invalid_token' } });
    }
    expect(await wrongSecrets()).toEqual([denied, denied]);
    // Probes have no credentials.
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      expect((await fetch(`${sandbox.adminUrl}${path}`)).status).toBe(200);
    }
  });

  // Ids that do not exist show that the role is checked first, and that nothing happens without it.
  const routes = (): readonly (readonly [string, string, string, object | undefined, string])[] => [
    ['viewer', 'GET', `/policies/traces/${traceId}`, undefined, 'getPolicyTrace'],
    ['viewer', 'POST', '/policies/lint', { policy_id: policyId }, 'lintPolicy'],
    ['viewer', 'GET', `/apps/${sandbox.appId}/operators`, undefined, 'listOperators'],
    ['viewer', 'GET', `/apps/${sandbox.appId}/operator_records`, undefined, 'listOperatorRecords'],
    [
      'developer',
      'POST',
      '/policies/explain',
      {
        wallet_id: walletId,
        request: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } },
      },
      'explainPolicy',
    ],
    [
      'developer',
      'POST',
      '/policies/replay',
      { wallet_id: walletId, draft: { chain_type: 'ethereum', rules: [] } },
      'replayPolicy',
    ],
    ['admin', 'POST', '/wallets/absent/restore', undefined, 'restoreWallet'],
    ['admin', 'POST', `/users/${userId}/take_over`, { from_user_id: 'absent' }, 'takeOverUser'],
    ['admin', 'POST', `/apps/${sandbox.appId}/operators`, { name: 'New', role: 'viewer' }, 'addOperator'],
    ['admin', 'PUT', `/apps/${sandbox.appId}/operators/absent`, { role: 'admin' }, 'changeOperatorRole'],
    ['admin', 'DELETE', `/apps/${sandbox.appId}/operators/absent`, undefined, 'removeOperator'],
  ];
  const order = ['viewer', 'developer', 'admin'];

  test('each route is open to its role and those above, and every call of an operator is recorded', async () => {
    for (const [needed, method, path, body, action] of routes()) {
      for (const role of order) {
        const { status, body: response } = await admin(method, path, { secret: secrets[role], body });
        const isAllowed = order.indexOf(role) >= order.indexOf(needed);
        expect([200, 404].includes(status), `${action} as ${role}: ${status}`).toBe(isAllowed);
        if (!isAllowed) expect(response).toMatchObject({ code: 'operator_role_required' });
        const [last] = await recordsOf(sandbox.appId);
        const result = !isAllowed ? 'operator_role_required' : status === 200 ? 'done' : 'not_found';
        expect(last).toMatchObject({ operator_name: `The ${role}`, action, result });
      }
    }
  });

  test('an operator of another app finds nothing', async () => {
    const allowedToAll = new Set(['/policies/lint', '/policies/explain', '/policies/replay']);
    for (const [, method, path, body] of routes()) {
      const { status } = await admin(method, path, { secret: secrets.outsider, body });
      expect({ path, status }).toEqual({ path, status: 404 });
    }
    for (const path of allowedToAll) {
      const named = await admin('POST', path, {
        secret: secrets.outsider,
        body: {
          app_id: sandbox.appId,
          ...{
            wallet_id: walletId,
            policy_id: policyId,
            request: {},
            draft: { chain_type: 'ethereum', rules: [] },
          },
        },
      });
      expect([400, 404]).toContain(named.status);
      expect(JSON.stringify(named.body)).not.toContain('"policies"');
    }
  });

  test('what an admin changes is recorded with the ids and without secrets', async () => {
    await call(sandbox, 'archiveWallet', { path: { wallet_id: walletId } });
    const { status } = await admin('POST', `/wallets/${walletId}/restore`, { secret: secrets.admin });
    expect(status).toBe(200);
    const { body: bob } = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'phone', number: '+1 555 555 0100' }] },
    });
    const taken = await admin('POST', `/users/${userId}/take_over`, {
      secret: secrets.admin,
      body: { from_user_id: bob.id },
    });
    expect(taken.status).toBe(200);
    const [takeOver, restore] = await recordsOf(sandbox.appId);
    expect(takeOver).toMatchObject({
      origin: 'admin_port',
      operator_name: 'The admin',
      operator_role: 'admin',
      action: 'takeOverUser',
      targets: { user_id: userId, from_user_id: bob.id },
      result: 'done',
    });
    expect(restore).toMatchObject({ action: 'restoreWallet', targets: { wallet_id: walletId } });
    const all = JSON.stringify(await recordsOf(sandbox.appId));
    for (const secret of Object.values(secrets)) expect(all).not.toContain(secret);
    expect(all).not.toContain('service_operator_secret');
  });

  test('a removed operator is refused, and the port stays closed without any', async () => {
    const { body: listed } = await admin('GET', `/apps/${sandbox.appId}/operators`, {
      secret: secrets.admin,
    });
    const operators = listed.data as { id: string; name: string }[];
    const admins = operators.toSorted((a) => (a.name === 'The admin' ? 1 : -1));
    for (const { id } of admins) {
      const path = `/apps/${sandbox.appId}/operators/${id}`;
      expect(await admin('DELETE', path, { secret: secrets.admin })).toMatchObject({
        status: 200,
        body: { id },
      });
    }
    const trace = `/policies/traces/${traceId}`;
    expect((await admin('GET', trace, { secret: secrets.admin })).status).toBe(401);
    expect((await admin('GET', trace)).status).toBe(401);
    await sandbox.reset();
    expect((await admin('GET', `/apps/${sandbox.appId}/operators`)).status).toBe(200);
  });
});
