import { decodeJwt } from 'jose';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import { fetch } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configureApp, control } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

// Two certified OAuth clients, unmodified, against the whole server.
let sandbox: TestSandbox;
const machine = { nowMs: Date.UTC(2026, 0, 1), now: () => machine.nowMs };
const email = 'alice@example.com';

beforeAll(async () => {
  sandbox = await startSandbox({ machine });
  await configureApp(sandbox, { device_flow: { public_clients: true, interval_seconds: 1 } });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

/** `fetch` that trusts the sandbox's certificate. */
const trusting = async (url: string, init: object) =>
  (await fetch(url, { ...init, dispatcher: sandbox.dispatcher })) as unknown as Response;

const decide = (userCode: string, action: 'approve' | 'deny') =>
  control(sandbox, 'POST', `device_codes/${userCode}`, { action, email });

const clients = ['basic', 'post', 'public'] as const;
type ClientKind = (typeof clients)[number];

describe.each(clients)('openid-client as a %s client', (kind) => {
  const authentications = {
    basic: () => openid.ClientSecretBasic(sandbox.appSecret),
    post: () => openid.ClientSecretPost(sandbox.appSecret),
    public: () => openid.None(),
  };

  test('discovers the server, polls until the user approves, and refreshes', async () => {
    const config = await openid.discovery(
      new URL(sandbox.baseUrl),
      sandbox.appId,
      undefined,
      authentications[kind](),
      { algorithm: 'oauth2', [openid.customFetch]: trusting },
    );
    const device = await openid.initiateDeviceAuthorization(config, { scope: 'wallets' });
    expect(device.verification_uri).toBe(`${sandbox.baseUrl}/device`);
    expect(device.verification_uri_complete).toBe(`${sandbox.baseUrl}/device?user_code=${device.user_code}`);
    await decide(device.user_code, 'approve');
    const tokens = await openid.pollDeviceAuthorizationGrant(config, device);
    expect(decodeJwt(tokens.access_token)).toMatchObject({ aud: sandbox.appId });
    const next = await openid.refreshTokenGrant(config, tokens.refresh_token!);
    expect(decodeJwt(next.access_token).sid).toBe(decodeJwt(tokens.access_token).sid);
    await expect(openid.refreshTokenGrant(config, tokens.refresh_token!)).rejects.toMatchObject({
      error: 'invalid_grant',
    });
  });
});

describe.each(clients)('oauth4webapi as a %s client', (kind) => {
  let server: oauth.AuthorizationServer;
  const client = (): oauth.Client => ({ client_id: sandbox.appId });
  const options = { [oauth.customFetch]: trusting };
  const authenticationOf = (secret: string): Record<ClientKind, () => oauth.ClientAuth> => ({
    basic: () => oauth.ClientSecretBasic(secret),
    post: () => oauth.ClientSecretPost(secret),
    public: () => oauth.None(),
  });
  const authentication = () => authenticationOf(sandbox.appSecret)[kind]();
  beforeAll(async () => {
    const issuer = new URL(sandbox.baseUrl);
    const answer = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...options });
    server = await oauth.processDiscoveryResponse(issuer, answer);
  });

  const begin = async () => {
    const answer = await oauth.deviceAuthorizationRequest(server, client(), authentication(), {}, options);
    return oauth.processDeviceAuthorizationResponse(server, client(), answer);
  };
  const poll = async (deviceCode: string, as = client()) => {
    const answer = await oauth.deviceCodeGrantRequest(server, as, authentication(), deviceCode, options);
    return oauth.processDeviceCodeResponse(server, as, answer);
  };
  const refusalOf = async (work: Promise<unknown>) => {
    const error = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (error instanceof oauth.ResponseBodyError) return { error: error.error, cause: error.cause };
    throw error;
  };

  test('meets every refusal of a device code', async () => {
    const device = await begin();
    expect(await refusalOf(poll(device.device_code))).toMatchObject({
      error: 'authorization_pending',
      cause: { interval: 1, error_description: 'the user has not decided yet' },
    });
    expect(await refusalOf(poll(device.device_code))).toMatchObject({
      error: 'slow_down',
      cause: { interval: 6 },
    });
    machine.nowMs += 6_000;
    await decide(device.user_code, 'deny');
    expect(await refusalOf(poll(device.device_code))).toMatchObject({ error: 'access_denied' });
    expect(await refusalOf(poll('unknown'))).toMatchObject({ error: 'invalid_grant' });
    const old = await begin();
    sandbox.clock.advance(900_000);
    expect(await refusalOf(poll(old.device_code))).toMatchObject({ error: 'expired_token' });
  });

  test('meets every refusal of the other grants', async () => {
    const token = async (parameters: Record<string, string>, grantType: string) => {
      const answer = await oauth.genericTokenEndpointRequest(
        server,
        client(),
        authentication(),
        grantType,
        parameters,
        options,
      );
      return oauth.processGenericTokenEndpointResponse(server, client(), answer);
    };
    expect(await refusalOf(token({ refresh_token: 'unknown' }, 'refresh_token'))).toMatchObject({
      error: 'invalid_grant',
    });
    expect(await refusalOf(token({ code: 'any', code_verifier: 'v' }, 'authorization_code'))).toMatchObject({
      error: 'invalid_grant',
    });
    expect(await refusalOf(token({ username: 'a', password: 'b' }, 'password'))).toMatchObject({
      error: 'unsupported_grant_type',
    });
    expect(await refusalOf(token({}, 'refresh_token'))).toMatchObject({ error: 'invalid_request' });
  });

  test('is refused as another client', async () => {
    const device = await begin();
    const wrong = kind === 'public' ? 'custosunknownapp000000000' : sandbox.appId;
    const answer = await oauth.deviceCodeGrantRequest(
      server,
      { client_id: wrong },
      authenticationOf('wrong')[kind](),
      device.device_code,
      options,
    );
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toMatch(/^Basic /);
    expect(await answer.json()).toMatchObject({ error: 'invalid_client' });
  });
});
