import { createHash } from 'node:crypto';
import { decodeJwt } from 'jose';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import { fetch } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acmeApp } from '../../mocks/apps.ts';
import { call, judgeOf, refusal } from '../support/call.ts';
import type { Judge } from '../support/document-judge.ts';
import { askControl, asOtherApp, configureApp, control } from '../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

describe('the device flow', () => {
  const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';
  const email = 'alice@example.com';

  let sandbox: TestSandbox;
  let judge: Judge;
  beforeAll(async () => {
    sandbox = await startSandbox();
    judge = await judgeOf(sandbox);
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  interface Sent {
    readonly headers?: Record<string, string>;
    readonly form?: string;
  }

  /** A form as an OAuth client sends it, judged by the document. */
  async function sendForm(
    id: 'authorizeOauthDevice' | 'exchangeOauthToken',
    { headers = {}, form = '' }: Sent,
  ) {
    const path = id === 'exchangeOauthToken' ? 'token' : 'device_authorization';
    const answer = await sandbox.dispatcher.request({
      origin: sandbox.baseUrl,
      path: `/api/oauth/v2/${path}`,
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: form,
    });
    const body = (await answer.body.json()) as Record<string, unknown>;
    const contentType = String(answer.headers['content-type']);
    judge({ operationId: id, status: answer.statusCode, contentType, body });
    return { status: answer.statusCode, headers: answer.headers, body };
  }

  const basic = (id: string, secret: string) => ({
    authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
  });
  const own = `client_id=${acmeApp.id}`;

  async function logIn(): Promise<string> {
    const { email: address, otp_code: code } = acmeApp.testAccount;
    const { body } = await call(sandbox, 'authenticatePasswordless', { body: { email: address, code } });
    return body.service_access_token;
  }

  describe('credentials of clients', () => {
    test.each([
      ['a form-encoded Basic secret', { headers: basic(acmeApp.id, acmeApp.secret.replaceAll('_', '%5F')) }],
      ['a plain Basic secret', { headers: basic(acmeApp.id, acmeApp.secret) }],
      ['a secret in the form', { form: `${own}&client_secret=${acmeApp.secret}` }],
      ['a public client', { form: own }],
      ['the header of the app id', { headers: { 'service-app-id': acmeApp.id } }],
      ['unknown and empty fields', { form: `${own}&client_secret=&nonce=1&scope=a+b` }],
    ])('credentials of clients: %s is accepted', async (_, sent) => {
      const { status, headers, body } = await sendForm('authorizeOauthDevice', sent);
      expect({ status, body }).toMatchObject({ status: 200, body: { expires_in: 900, interval: 5 } });
      expect(headers['cache-control']).toBe('no-store');
    });

    test.each([
      ['a wrong Basic secret', { headers: basic(acmeApp.id, 'wrong') }],
      ['broken Basic credentials', { headers: { authorization: 'Basic !' } }],
      ['a wrong secret in the form', { form: `${own}&client_secret=wrong` }],
      ['an unknown public client', { form: 'client_id=custosunknownapp000000000' }],
      ['nothing at all', {}],
      ['a Bearer token', { headers: { authorization: 'Bearer x' }, form: own }],
    ])('credentials of clients: %s is refused', async (_, sent) => {
      const { status, headers, body } = await sendForm('authorizeOauthDevice', sent);
      expect({ status, body }).toMatchObject({
        status: 401,
        body: { error: 'invalid_client', code: 'invalid_client', error_description: expect.any(String) },
      });
      expect(headers['www-authenticate']).toMatch(/^Basic realm=/);
    });

    test('public clients are admitted by the app alone', async () => {
      const other = await asOtherApp(sandbox);
      const refused = await sendForm('authorizeOauthDevice', { form: `client_id=${other.appId}` });
      expect(refused).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
      const withSecret = `client_id=${other.appId}&client_secret=${encodeURIComponent(other.appSecret)}`;
      expect((await sendForm('authorizeOauthDevice', { form: withSecret })).status).toBe(200);
      await configureApp(other, { device_flow: { public_clients: true } });
      expect((await sendForm('authorizeOauthDevice', { form: `client_id=${other.appId}` })).status).toBe(200);
    });

    test('a client that names another one is refused', async () => {
      const other = await asOtherApp(sandbox);
      const headers = basic(acmeApp.id, acmeApp.secret);
      for (const sent of [
        { headers, form: `client_id=${other.appId}` },
        { headers: { ...headers, 'service-app-id': other.appId } },
      ]) {
        expect(await sendForm('authorizeOauthDevice', sent)).toMatchObject({
          status: 400,
          body: { error: 'invalid_request', code: 'invalid_request' },
        });
      }
    });

    test('the code of one app is unknown to another', async () => {
      const { body } = await sendForm('authorizeOauthDevice', { form: own });
      const other = await asOtherApp(sandbox);
      const answer = await refusal(other, 'exchangeOauthToken', {
        body: { grant_type: deviceGrant, device_code: body.device_code },
      });
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    });
  });

  describe('requests of clients', () => {
    const cases: [string, string][] = [
      ['a repeated field', `${own}&grant_type=refresh_token&refresh_token=a&refresh_token=b`],
      ['a missing field', `${own}&grant_type=refresh_token`],
      ['an empty field', `${own}&grant_type=refresh_token&refresh_token=`],
      ['no grant type', own],
    ];
    test.each(cases)('requests of clients: %s is invalid', async (_, form) => {
      expect(await sendForm('exchangeOauthToken', { form })).toMatchObject({
        status: 400,
        body: { error: 'invalid_request' },
      });
    });

    test('an unknown grant type is unsupported, in a form and in JSON', async () => {
      const refused = { error: 'unsupported_grant_type', code: 'unsupported_grant_type' };
      const form = `${own}&grant_type=client_credentials`;
      expect((await sendForm('exchangeOauthToken', { form })).body).toMatchObject(refused);
      const body = { grant_type: 'password', username: 'a', password: 'b' };
      expect((await refusal(sandbox, 'exchangeOauthToken', { body })).body).toMatchObject(refused);
    });

    test('JSON is as strict as everywhere', async () => {
      const answer = await refusal(sandbox, 'authorizeOauthDevice', { body: { nonce: '1' } });
      expect(answer).toMatchObject({
        status: 400,
        body: { error: 'invalid_request', code: 'invalid_data', data: { issues: [{ pointer: '/nonce' }] } },
      });
    });

    test('a body is small while its sender is unknown', async () => {
      const form = `${own}&scope=${'x'.repeat(16_384)}`;
      expect((await sendForm('authorizeOauthDevice', { form })).status).toBe(413);
      expect(
        (await sendForm('authorizeOauthDevice', { form, headers: basic(acmeApp.id, acmeApp.secret) })).status,
      ).toBe(200);
    });

    test('another media type, an old request and text with U+0000 are invalid', async () => {
      const xml = await sendForm('exchangeOauthToken', {
        form: '<grant/>',
        headers: { ...basic(acmeApp.id, acmeApp.secret), 'content-type': 'text/xml' },
      });
      expect(xml).toMatchObject({ status: 415, body: { error: 'invalid_request' } });
      const old = await refusal(sandbox, 'authorizeOauthDevice', {}, { expiryMs: 1 });
      expect(old).toMatchObject({ status: 400, body: { error: 'invalid_request', code: 'request_expired' } });
      const nul = await sendForm('exchangeOauthToken', {
        form: `${own}&grant_type=refresh_token&refresh_token=%00`,
      });
      expect(nul).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
    });
  });

  test('the metadata names the endpoints of the host that was asked', async () => {
    const { baseUrl } = sandbox;
    const { body } = await call(sandbox, 'getOauthMetadata', {}, { headers: { authorization: undefined } });
    expect(body).toMatchObject({
      issuer: baseUrl,
      token_endpoint: `${baseUrl}/api/oauth/v2/token`,
      device_authorization_endpoint: `${baseUrl}/api/oauth/v2/device_authorization`,
    });
  });

  test("a user approves, lists and revokes with an access token, as a page of the app's would", async () => {
    const { body: device } = await call(sandbox, 'authorizeOauthDevice', {});
    const headers = { authorization: `Bearer ${await logIn()}` };
    const { user_code } = device;
    const decision = { body: { user_code, action: 'approve' } } as const;
    await call(sandbox, 'verifyOauthDevice', decision, { headers });
    const again = await refusal(sandbox, 'verifyOauthDevice', decision, { headers });
    expect(again).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
    const { body: tokens } = await call(sandbox, 'exchangeOauthToken', {
      body: { grant_type: deviceGrant, device_code: device.device_code },
    });
    // The device's own token is a user's token as well.
    const asDevice = { headers: { authorization: `Bearer ${tokens.access_token}` } };
    const { body: grants } = await call(sandbox, 'listOauthGrants', {}, asDevice);
    expect(grants.data).toHaveLength(1);
    const { body: next } = await call(sandbox, 'authorizeOauthDevice', {});
    const byDevice = await refusal(
      sandbox,
      'verifyOauthDevice',
      { body: { user_code: next.user_code, action: 'approve' } },
      asDevice,
    );
    expect(byDevice).toMatchObject({ status: 401, body: { code: 'missing_or_invalid_token' } });
    const path = { grant_id: grants.data[0]!.id };
    await call(sandbox, 'revokeOauthGrant', { path }, { headers });
    expect((await refusal(sandbox, 'revokeOauthGrant', { path })).status).toBe(404);
  });

  test('clients without a secret at one address have 25 undecided codes, which leave places to the others', async () => {
    const other = await asOtherApp(sandbox);
    await configureApp(other, { device_flow: { public_clients: true } });
    const begin = () => sendForm('authorizeOauthDevice', { form: `client_id=${other.appId}` });
    for (let made = 0; made < 25; made += 1) expect((await begin()).status).toBe(200);
    const refused = { status: 429, body: { code: 'too_many_requests' } };
    expect(await begin()).toMatchObject(refused);
    const headers = basic(other.appId, other.appSecret);
    expect((await sendForm('authorizeOauthDevice', { headers })).status).toBe(200);
    sandbox.clock.advance(900_000);
    expect((await begin()).status).toBe(200);
  });

  describe('the page of the sandbox', () => {
    test('the page of the sandbox is static, runs its own script only, and cannot be framed', async () => {
      const { body: device } = await call(sandbox, 'authorizeOauthDevice', {});
      const { pathname } = new URL(device.verification_uri);
      const answer = await sandbox.dispatcher.request({
        origin: sandbox.baseUrl,
        path: pathname,
        method: 'GET',
      });
      const html = await answer.body.text();
      expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
      const policy = String(answer.headers['content-security-policy']);
      expect(policy).toContain("frame-ancestors 'none'");
      for (const tag of ['script', 'style']) {
        const inline = new RegExp(`<${tag}>([^]*?)</${tag}>`).exec(html)?.[1] ?? '';
        expect(inline).not.toBe('');
        expect(policy).toContain(`'sha256-${createHash('sha256').update(inline).digest('base64')}'`);
      }
      expect(
        (await sandbox.dispatcher.request({ origin: sandbox.baseUrl, path: '/device', method: 'POST' }))
          .statusCode,
      ).toBe(405);
    });

    test('decides through the control plane', async () => {
      const { body: device } = await call(sandbox, 'authorizeOauthDevice', {});
      const path = `device_codes/${device.user_code.toLowerCase()}`;
      expect(await control(sandbox, 'GET', path)).toMatchObject({
        user_code: device.user_code,
        app_id: sandbox.appId,
        app_name: 'Acme',
        status: 'pending',
      });
      expect((await askControl(sandbox, 'POST', path, { action: 'approve' })).status).toBe(400);
      expect((await askControl(sandbox, 'POST', path, { action: 'approve', email: 'x@y.z' })).status).toBe(
        404,
      );
      expect(await control(sandbox, 'POST', path, { action: 'deny', email })).toMatchObject({
        status: 'denied',
      });
      expect(await askControl(sandbox, 'POST', path, { action: 'approve', email })).toMatchObject({
        status: 400,
        body: { code: 'invalid_state' },
      });
      expect((await askControl(sandbox, 'GET', 'device_codes/BBBB-BBBB')).status).toBe(404);
      sandbox.clock.advance(900_000);
      expect(await control(sandbox, 'GET', path)).toMatchObject({ status: 'expired' });
    });

    test('the page of the sandbox gives way to the page of the app', async () => {
      const other = await asOtherApp(sandbox);
      await configureApp(other, { device_flow: { verification_uri: 'https://acme.example/connect' } });
      const { body } = await call(other, 'authorizeOauthDevice', {});
      expect(body.verification_uri_complete).toBe(`https://acme.example/connect?user_code=${body.user_code}`);
    });

    test.each([
      [{ verification_uri: 'http://acme.example' }, '/settings/device_flow/verification_uri'],
      [{ interval_seconds: 0 }, '/settings/device_flow/interval_seconds'],
      [{ grant_days: 1.5 }, '/settings/device_flow/grant_days'],
      [{ public_clients: 'yes' }, '/settings/device_flow/public_clients'],
      [{ page: 1 }, '/settings/device_flow/page'],
      [[], '/settings/device_flow'],
    ])('the setting %j is refused', async (setting, pointer) => {
      const answer = await askControl(sandbox, 'PUT', `apps/${sandbox.appId}`, {
        settings: { device_flow: setting },
      });
      expect(answer).toMatchObject({ status: 400, body: { error: expect.stringContaining(pointer) } });
    });
  });
});

describe('reference clients', () => {
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
      expect(device.verification_uri_complete).toBe(
        `${sandbox.baseUrl}/device?user_code=${device.user_code}`,
      );
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
      expect(await refusalOf(token({ code: 'any', code_verifier: 'v' }, 'authorization_code'))).toMatchObject(
        {
          error: 'invalid_grant',
        },
      );
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
});
