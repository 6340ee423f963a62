import { decodeJwt } from 'jose';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { updateApp } from '../../../src/domain/access/apps/app.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { dropExpiredOauth } from '../../../src/domain/wallets/oauth/device-codes.ts';
import { changeUserState } from '../../../src/domain/wallets/users/user.ts';
import type { OAuthTokenSuccessResponse } from '../../../src/generated/schemas.ts';
import type { OperationContext } from '../../../src/ports/operation-context.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

const DAY_MS = 24 * 60 * 60_000;
const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';

describe.each(databaseKinds)('on %s', (kind) => {
  let operations: TestOperations;
  let alice: { userId: string; sessionId: string };
  beforeEach(async () => {
    operations = await openOperations(kind);
    await change((context) =>
      updateApp(context, operations.app.id, {
        settings: { device_flow: { verification_uri: 'https://acme.example/device' } },
      }),
    );
    alice = { userId: await createUser('alice'), sessionId: 'login' };
  });
  afterEach(() => operations[Symbol.asyncDispose]());

  const change = <T>(work: (context: OperationContext) => Promise<T>): Promise<T> =>
    operations.database.orm.em
      .fork()
      .transactional((em) => work(operations.context(em as OperationContext['em'])));
  const createUser = async (name: string): Promise<string> => {
    const linked_accounts = [{ type: 'custom_auth', custom_user_id: name }];
    const { body } = await operations.run('createUser', { body: { linked_accounts } });
    return (body as { id: string }).id;
  };
  const begin = async () => {
    const { body } = await operations.run('authorizeOauthDevice', {});
    return body as { device_code: string; user_code: string };
  };
  const decide = (user_code: string, action = 'approve', as = alice) =>
    operations.run('verifyOauthDevice', { body: { user_code, action }, as });
  const poll = (device_code: string) =>
    operations.run('exchangeOauthToken', { body: { grant_type: deviceGrant, device_code } });
  const refresh = (refresh_token: string) =>
    operations.run('exchangeOauthToken', { body: { grant_type: 'refresh_token', refresh_token } });
  const grant = async (): Promise<OAuthTokenSuccessResponse & { refresh_token: string }> => {
    const { device_code, user_code } = await begin();
    await decide(user_code);
    const { status, body } = await poll(device_code);
    expect(status).toBe(200);
    return body as never;
  };
  const pass = (ms: number): void => {
    operations.clock.nowMs += ms;
  };
  const codeOf = ({ body }: { body: unknown }) => (body as { error?: string }).error;
  const rowsOf = async (table: keyof Tables & string) =>
    (await operations.database.orm.em.fork().getKysely<Tables>().selectFrom(table).selectAll().execute())
      .length;

  test('a device gets the tokens of the user who approved it, once', async () => {
    const { device_code, user_code } = await begin();
    expect(user_code).toMatch(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/);
    expect(await poll(device_code)).toMatchObject({
      status: 400,
      body: { error: 'authorization_pending', code: 'authorization_pending', interval: 5 },
    });
    // Case and hyphens do not matter.
    expect(await decide(user_code.toLowerCase().replace('-', ' '))).toEqual({
      status: 200,
      body: { success: true },
    });
    pass(5_000);
    const answers = await Promise.all([poll(device_code), poll(device_code), poll(device_code)]);
    expect(answers.map(codeOf).sort()).toEqual(['invalid_grant', 'invalid_grant', undefined]);
    const tokens = answers.find(({ status }) => status === 200)?.body as OAuthTokenSuccessResponse;
    expect(decodeJwt(tokens.access_token)).toMatchObject({ sub: alice.userId, aud: operations.app.id });
    expect(tokens).toMatchObject({ token_type: 'Bearer', expires_in: 3600 });
    expect(await rowsOf('oauth_grants')).toBe(1);
    // No code or token is stored as it is.
    const rows = await Promise.all(
      (['oauth_device_codes', 'oauth_refresh_tokens', 'outbox_events'] as const).map((table) =>
        operations.database.orm.em.fork().getKysely<Tables>().selectFrom(table).selectAll().execute(),
      ),
    );
    const stored = JSON.stringify(rows);
    for (const secret of [device_code, tokens.refresh_token!]) expect(stored).not.toContain(secret);
  });

  test('polling too soon lengthens the interval for good', async () => {
    const { device_code, user_code } = await begin();
    const answers = [await poll(device_code), await poll(device_code)];
    pass(9_000);
    answers.push(await poll(device_code));
    pass(15_000);
    answers.push(await poll(device_code));
    await decide(user_code);
    pass(14_000);
    answers.push(await poll(device_code));
    pass(20_000);
    answers.push(await poll(device_code));
    expect(answers.map(({ body }) => [codeOf({ body }), (body as { interval?: number }).interval])).toEqual([
      ['authorization_pending', 5],
      ['slow_down', 10],
      ['slow_down', 15],
      ['authorization_pending', 15],
      ['slow_down', 20],
      [undefined, undefined],
    ]);
  });

  test('of polls at the same moment only the first is not too soon', async () => {
    const { device_code } = await begin();
    const answers = await Promise.all(Array.from({ length: 6 }, () => poll(device_code)));
    expect(answers.map(codeOf).sort()).toEqual(['authorization_pending', ...Array(5).fill('slow_down')]);
    const intervals = answers.map(({ body }) => (body as unknown as { interval: number }).interval);
    expect(intervals.sort((a, b) => a - b)).toEqual([5, 10, 15, 20, 25, 30]);
  });

  test('without a verification page there is no device flow', async () => {
    await change((context) =>
      updateApp(context, operations.app.id, { settings: { device_flow: { interval_seconds: 1 } } }),
    );
    expect(await operations.run('authorizeOauthDevice', {})).toMatchObject({
      status: 403,
      body: { error: 'unauthorized_client', code: 'feature_not_enabled' },
    });
  });

  test('a denied device, an old code and an unknown one get nothing', async () => {
    const [denied, old] = [await begin(), await begin()];
    await decide(denied.user_code, 'deny');
    expect(codeOf(await poll(denied.device_code))).toBe('access_denied');
    pass(900_000);
    expect(codeOf(await poll(old.device_code))).toBe('expired_token');
    expect(await decide(old.user_code)).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
    expect(codeOf(await poll('unknown'))).toBe('invalid_grant');
    expect(await decide(denied.user_code)).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
  });

  test('only the token of an ordinary login decides', async () => {
    const { user_code } = await begin();
    const bySecret = await operations.run('verifyOauthDevice', { body: { user_code, action: 'approve' } });
    expect(bySecret).toMatchObject({ status: 401, body: { code: 'missing_or_invalid_token' } });
    const { sid } = decodeJwt((await grant()).access_token);
    const byDevice = await decide(user_code, 'approve', { ...alice, sessionId: String(sid) });
    expect(byDevice).toMatchObject({ status: 401, body: { code: 'missing_or_invalid_token' } });
    expect(await operations.run('verifyOauthDevice', { as: alice })).toMatchObject({
      status: 400,
      body: { code: 'invalid_data' },
    });
  });

  test('a user guesses five codes in a quarter of an hour, even all at once', async () => {
    const { user_code } = await begin();
    const guesses = await Promise.all(Array.from({ length: 8 }, () => decide('BBBB-BBBB')));
    expect(guesses.map(({ status }) => status).sort()).toEqual([404, 404, 404, 404, 404, 429, 429, 429]);
    expect(await decide(user_code)).toMatchObject({ status: 429, body: { code: 'too_many_requests' } });
    const bob = { userId: await createUser('bob'), sessionId: 'login' };
    expect((await decide(user_code, 'deny', bob)).status).toBe(200);
    pass(900_000);
    expect((await decide(user_code)).status).toBe(400);
  });

  test('all users of an app together guess sixty codes a minute', async () => {
    const users = await Promise.all(Array.from({ length: 13 }, (_, index) => createUser(`u${index}`)));
    const guessers = users.flatMap((userId) => Array(5).fill(userId) as string[]);
    const statuses: number[] = [];
    for (const userId of guessers) {
      statuses.push((await decide('BBBB-BBBB', 'approve', { userId, sessionId: 'login' })).status);
    }
    expect(statuses).toEqual([...Array(60).fill(404), ...Array(5).fill(429)]);
  });

  describe('refreshing', () => {
    test('refreshing: returns a new pair each time; a used token revokes the grant', async () => {
      const first = await grant();
      const second = (await refresh(first.refresh_token)).body as OAuthTokenSuccessResponse;
      expect(second.refresh_token).not.toBe(first.refresh_token);
      expect(decodeJwt(second.access_token)).toMatchObject({ sub: alice.userId });
      expect(codeOf(await refresh(first.refresh_token))).toBe('invalid_grant');
      expect(codeOf(await refresh(second.refresh_token!))).toBe('invalid_grant');
      expect(await operations.run('listOauthGrants', {})).toEqual({ status: 200, body: { data: [] } });
    });

    test('refreshing of simultaneous refreshes one wins', async () => {
      const { refresh_token } = await grant();
      const other = kind === 'postgres' ? await operations.anotherProcess() : undefined;
      const body = { grant_type: 'refresh_token', refresh_token };
      const answers = await Promise.all(
        [operations, other ?? operations, operations, other ?? operations].map((process) =>
          process.run('exchangeOauthToken', { body }),
        ),
      );
      await other?.[Symbol.asyncDispose]();
      expect(answers.map(codeOf).sort()).toEqual([...Array(3).fill('invalid_grant'), undefined]);
      const live = operations.database.orm.em
        .fork()
        .getKysely<Tables>()
        .selectFrom('oauth_refresh_tokens')
        .selectAll()
        .where('used_at_ms', 'is', null);
      // The winner's token is the only live one, and its grant is revoked.
      expect(await live.execute()).toHaveLength(1);
      const winner = answers.find(({ status }) => status === 200)?.body as OAuthTokenSuccessResponse;
      expect(codeOf(await refresh(winner.refresh_token!))).toBe('invalid_grant');
    });

    test('refreshing: ends after the idle days, and at the age, that the app sets', async () => {
      const idle = await grant();
      pass(30 * DAY_MS);
      expect(codeOf(await refresh(idle.refresh_token))).toBe('invalid_grant');
      await change((context) =>
        updateApp(context, operations.app.id, {
          settings: {
            device_flow: {
              verification_uri: 'https://acme.example/device',
              refresh_idle_days: 2,
              grant_days: 3,
            },
          },
        }),
      );
      let tokens: OAuthTokenSuccessResponse = await grant();
      for (let day = 1; day <= 2; day += 1) {
        pass(DAY_MS);
        const answer = await refresh(tokens.refresh_token!);
        expect(answer.status).toBe(200);
        tokens = answer.body as OAuthTokenSuccessResponse;
      }
      pass(DAY_MS);
      expect(codeOf(await refresh(tokens.refresh_token!))).toBe('invalid_grant');
    });

    test('refreshing: ends with a frozen user, for good', async () => {
      const { refresh_token } = await grant();
      const freeze = (isFrozen: boolean) =>
        change((context) => changeUserState(context, alice.userId, { isFrozen }));
      await freeze(true);
      expect(codeOf(await refresh(refresh_token))).toBe('invalid_grant');
      await freeze(false);
      expect(codeOf(await refresh(refresh_token))).toBe('invalid_grant');
    });

    test('a device that was approved before its user was frozen gets no tokens', async () => {
      const before = await begin();
      await decide(before.user_code);
      const waiting = await begin();
      const freeze = (isFrozen: boolean) =>
        change((context) => changeUserState(context, alice.userId, { isFrozen }));
      await freeze(true);
      expect(await decide(waiting.user_code)).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
      await freeze(false);
      expect(codeOf(await poll(before.device_code))).toBe('access_denied');
      expect((await decide(waiting.user_code)).status).toBe(200);
    });
  });

  test('a revoked grant neither refreshes nor signs', async () => {
    const tokens = await grant();
    const id = String(decodeJwt(tokens.access_token).sid);
    const bob = { userId: await createUser('bob'), sessionId: 'login' };
    const { body: listed } = await operations.run('listOauthGrants', { as: alice });
    const at = new Date(operations.clock.nowMs).toISOString();
    expect(listed).toEqual({
      data: [{ id, grant_type: 'device_code', created_at: at, last_used_at: at }],
    });
    expect((await operations.run('listOauthGrants', { as: bob })).body).toEqual({ data: [] });
    await operations.run('createWallet', {
      body: { chain_type: 'ethereum', owner: { user_id: alice.userId } },
    });
    const authenticate = () =>
      operations.run('authenticateWallets', { body: { user_jwt: tokens.access_token } });
    expect((await authenticate()).status).toBe(200);
    expect(await rowsOf('user_keys')).toBe(1);

    const revoke = (as?: typeof alice) =>
      operations.run('revokeOauthGrant', { path: { grant_id: id }, ...(as === undefined ? {} : { as }) });
    expect((await revoke(bob)).status).toBe(404);
    expect(await revoke(alice)).toEqual({ status: 200, body: { success: true } });
    expect(codeOf(await refresh(tokens.refresh_token))).toBe('invalid_grant');
    expect(await rowsOf('user_keys')).toBe(0);
    expect(await authenticate()).toMatchObject({ status: 401, body: { code: 'missing_or_invalid_token' } });
    expect((await revoke()).status).toBe(404);
  });

  test('deleting a user ends their devices', async () => {
    const [{ refresh_token }, waiting] = [await grant(), await begin()];
    await decide(waiting.user_code);
    await operations.run('deleteUser', { path: { user_id: alice.userId } });
    expect(codeOf(await refresh(refresh_token))).toBe('invalid_grant');
    expect(codeOf(await poll(waiting.device_code))).toBe('invalid_grant');
    expect(await rowsOf('oauth_refresh_tokens')).toBe(0);
  });

  test('the sweep deletes what can no longer be used', async () => {
    const { refresh_token } = await grant();
    const old = await begin();
    await decide('BBBB-BBBB');
    const used = (await refresh(refresh_token)).body as OAuthTokenSuccessResponse;
    const sweep = () =>
      change(({ em, nowMs }) => dropExpiredOauth(em, { nowMs, machineMs: operations.clock.nowMs }));
    pass(900_000);
    expect(await sweep()).toBe(0);
    expect(codeOf(await poll(old.device_code))).toBe('expired_token');
    pass(DAY_MS);
    expect(await sweep()).toBe(3);
    pass(20 * DAY_MS);
    const next = (await refresh(used.refresh_token!)).body as OAuthTokenSuccessResponse;
    pass(20 * DAY_MS);
    expect(await sweep()).toBe(1);
    expect((await refresh(next.refresh_token!)).status).toBe(200);
  });
});
