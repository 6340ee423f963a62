import { describe, expect, test } from 'vitest';
import { createAuthenticate } from '../../../src/server/authenticate.ts';
import { createFailureLimit, type FailureLimit } from '../../../src/server/rate-limit.ts';
import type { RequestState } from '../../../src/server/request-state.ts';
import type { Operation } from '../../../src/server/route-index.ts';
import { noonMs, sha256, stoppedClock, toyApp, toyDirectory } from './toy-server.ts';

const app = { id: toyApp.id };
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
const good = basic(`${toyApp.id}:${toyApp.secret}`);

const noToken = { error: 'Missing or invalid authorization header.', code: 'missing_or_invalid_token' };
const badCredentials = { error: 'Invalid app ID or app secret.' };
const noAppId = { error: 'Missing or invalid app ID.', code: 'missing_or_invalid_service_app_id' };

function setUp(failures?: FailureLimit) {
  const directory = toyDirectory();
  const clock = stoppedClock();
  const userTokens = {
    verify: async (token: string, { appId }: { appId: string }) =>
      token === 'alices-token' && appId === toyApp.id
        ? { userId: 'did:service:alice', sessionId: 'session' }
        : undefined,
  };
  const authenticate = createAuthenticate({ apps: directory, userTokens, clock, failures });
  const ask = async (headers: Record<string, string>, security: Operation['security'] = 'app') => {
    const state = {
      headers,
      remoteAddress: '203.0.113.7',
      nowMs: noonMs,
      route: { operation: { security } },
      app: undefined,
      userId: undefined,
    } as unknown as RequestState;
    try {
      await authenticate(state);
      return { app: state.app, userId: state.userId };
    } catch (error) {
      const { status, toBody } = error as { status: number; toBody(): object };
      return { status, body: toBody.call(error) };
    }
  };
  return { directory, clock, ask };
}

const refusals: [what: string, headers: Record<string, string>, status: number, body: object][] = [
  ['no Authorization', { 'service-app-id': toyApp.id }, 401, noToken],
  ['nothing at all', {}, 401, noToken],
  ['a scheme that is not Basic', { authorization: 'Digest x', 'service-app-id': toyApp.id }, 401, noToken],
  ['a user token', { authorization: 'Bearer alices-token', 'service-app-id': toyApp.id }, 401, noToken],
  ['no base64', { authorization: 'Basic €', 'service-app-id': toyApp.id }, 401, noToken],
  ['Basic alone', { authorization: 'Basic', 'service-app-id': toyApp.id }, 401, noToken],
  ['no colon', { authorization: basic('no-colon'), 'service-app-id': toyApp.id }, 401, noToken],
  [
    'a wrong secret',
    { authorization: basic(`${toyApp.id}:wrong`), 'service-app-id': toyApp.id },
    401,
    badCredentials,
  ],
  ['no secret', { authorization: basic(`${toyApp.id}:`), 'service-app-id': toyApp.id }, 401, badCredentials],
  [
    'an unknown app',
    { authorization: basic(`unknown:${toyApp.secret}`), 'service-app-id': 'unknown' },
    401,
    badCredentials,
  ],
  ['a wrong secret and no app id', { authorization: basic(`${toyApp.id}:wrong`) }, 401, badCredentials],
  ['no app id', { authorization: good }, 400, noAppId],
  ['an empty app id', { authorization: good, 'service-app-id': '' }, 400, noAppId],
  ['the id of another app', { authorization: good, 'service-app-id': 'other' }, 401, badCredentials],
];

test.each(refusals)('%s is refused', async (_what, headers, status, body) => {
  const { ask } = setUp();
  expect(await ask(headers)).toEqual({ status, body });
});

test.each(refusals)('%s is refused after the app was accepted', async (_what, headers, status, body) => {
  const { ask } = setUp();
  await ask({ authorization: good, 'service-app-id': toyApp.id });
  expect(await ask(headers)).toEqual({ status, body });
});

test.each([good, good.replace('Basic', 'basic'), good.replace('Basic', 'BASIC ')])(
  '%s is accepted',
  async (authorization) => {
    const { ask } = setUp();
    expect(await ask({ authorization, 'service-app-id': toyApp.id })).toEqual({ app, userId: undefined });
  },
);

test('a secret may contain colons and any characters', async () => {
  const { ask, directory } = setUp();
  directory.records = [{ ...app, secretHashes: [sha256('a:b:ü')], allowedOrigins: [] }];
  expect(await ask({ authorization: basic(`${app.id}:a:b:ü`), 'service-app-id': app.id })).toMatchObject({
    app,
  });
});

test('every valid secret is accepted', async () => {
  const { ask, directory } = setUp();
  directory.records = [{ ...app, secretHashes: [sha256('new'), sha256('old')], allowedOrigins: [] }];
  for (const secret of ['new', 'old']) {
    expect(
      await ask({ authorization: basic(`${app.id}:${secret}`), 'service-app-id': app.id }),
    ).toMatchObject({ app });
  }
});

test('an app without a valid secret accepts no credentials', async () => {
  const { ask, directory } = setUp();
  directory.records = [{ ...app, secretHashes: [], allowedOrigins: [] }];
  expect(await ask({ authorization: good, 'service-app-id': app.id })).toEqual({
    status: 401,
    body: badCredentials,
  });
});

describe('an accepted credential', () => {
  const headers = { authorization: good, 'service-app-id': toyApp.id };

  test('an accepted credential is not looked up again', async () => {
    const { ask, directory } = setUp();
    for (let turn = 0; turn < 5; turn += 1) expect(await ask(headers)).toMatchObject({ app });
    expect(directory.lookups).toBe(1);
  });

  test('an accepted credential is looked up again when the app has changed, and refused when its secret has', async () => {
    const { ask, directory } = setUp();
    await ask(headers);
    directory.records = [{ ...app, secretHashes: [sha256('rotated')], allowedOrigins: [] }];
    directory.changes += 1;
    expect(await ask(headers)).toEqual({ status: 401, body: badCredentials });
  });

  test('an accepted credential is looked up again after two seconds, because another process may have changed it', async () => {
    const { ask, directory, clock } = setUp();
    await ask(headers);
    directory.records = [];
    clock.nowMs += 1_999;
    expect(await ask(headers)).toMatchObject({ app });
    clock.nowMs += 1;
    expect(await ask(headers)).toEqual({ status: 401, body: badCredentials });
  });

  test('an accepted credential is not cached when it was refused', async () => {
    const { ask, directory } = setUp();
    const wrong = { ...headers, authorization: basic(`${app.id}:wrong`) };
    await ask(wrong);
    await ask(wrong);
    expect(directory.lookups).toBe(2);
  });
});

describe('an operation that accepts user tokens', () => {
  test('an operation that accepts user tokens accepts a user, and the app as before', async () => {
    const { ask } = setUp();
    const user = { authorization: 'Bearer alices-token', 'service-app-id': toyApp.id };
    expect(await ask(user, 'app-or-user')).toEqual({ app, userId: 'did:service:alice' });
    expect(await ask({ ...user, authorization: good }, 'app-or-user')).toEqual({ app, userId: undefined });
  });

  test.each([
    ['an unknown token', { authorization: 'Bearer x', 'service-app-id': toyApp.id }, 401, noToken],
    ['an unknown app', { authorization: 'Bearer alices-token', 'service-app-id': 'other' }, 401, noToken],
    ['no app id', { authorization: 'Bearer alices-token' }, 400, noAppId],
  ] as const)('an operation that accepts user tokens refuses %s', async (_what, headers, status, body) => {
    const { ask } = setUp();
    expect(await ask(headers, 'app-or-user')).toEqual({ status, body });
  });

  test('an operation that accepts user tokens refuses every token without a verifier', async () => {
    const authenticate = createAuthenticate({ apps: toyDirectory(), clock: stoppedClock() });
    const headers = { authorization: 'Bearer alices-token', 'service-app-id': toyApp.id };
    const state = {
      headers,
      route: { operation: { security: 'app-or-user' } },
    } as unknown as RequestState;
    await expect(authenticate(state)).rejects.toMatchObject({ code: 'missing_or_invalid_token' });
  });
});

describe('an operation open to all', () => {
  test('an operation open to all requires nothing and uses only the app id', async () => {
    const { ask } = setUp();
    expect(await ask({}, 'none')).toEqual({ app: undefined, userId: undefined });
    expect(await ask({ authorization: 'Basic wrong' }, 'none')).toMatchObject({ app: undefined });
    expect(await ask({ 'service-app-id': toyApp.id }, 'none')).toMatchObject({ app });
    expect(await ask({ 'service-app-id': 'other' }, 'none')).toMatchObject({ app: undefined });
  });
});

test('an address that has sent too many wrong secrets is refused before any look-up', async () => {
  const { ask, directory } = setUp(createFailureLimit({ points: 3, durationSeconds: 60 }));
  const wrong = { authorization: basic(`${toyApp.id}:wrong`), 'service-app-id': toyApp.id };
  const right = { authorization: good, 'service-app-id': toyApp.id };
  await ask(right);
  for (let turn = 0; turn < 3; turn += 1) {
    expect(await ask(wrong)).toEqual({ status: 401, body: badCredentials });
  }
  const lookups = directory.lookups;
  expect(await ask(wrong)).toMatchObject({ status: 429, body: { code: 'too_many_requests' } });
  expect(directory.lookups).toBe(lookups);
  // Cached credentials from the same address are still accepted.
  expect(await ask(right)).toEqual({ app, userId: undefined });
});
