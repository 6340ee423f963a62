import { createPublicKey } from 'node:crypto';
import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp, configureApp } from '../../support/other-app.ts';
import { startSandbox } from '../../support/sandbox.ts';

test('an app is shown with its verification key and without secrets', async () => {
  await using sandbox = await startSandbox();
  const path = { app_id: sandbox.appId };
  const { body } = await call(sandbox, 'getApp', { path });
  expect(body).toMatchObject({ id: sandbox.appId, name: 'Acme', email_auth: true, allowlist_enabled: false });
  const { keys } = (await call(sandbox, 'getAppJwks', { path })).body;
  const { kty, crv, x, y } = createPublicKey(body.verification_key).export({ format: 'jwk' });
  expect(keys[0]).toMatchObject({ kty, crv, x, y });
  expect(JSON.stringify(body)).not.toContain(sandbox.appSecret);
});

test('settings are those that the operator set; a setting of another type counts as not set', async () => {
  await using sandbox = await startSandbox();
  const path = { app_id: sandbox.appId };
  const before = (await call(sandbox, 'getApp', { path })).body;
  const set = {
    allowlist_enabled: true,
    legal_name: 'Acme Inc.',
    theme: 'dark',
    allowed_native_app_ids: ['com.acme'],
    allowlist_config: { ...before.allowlist_config, error_title: 'Not yet' },
    allowed_origins: ['https://app.acme.example'],
  };
  await configureApp(sandbox, {
    ...set,
    logo_url: 7,
    guest_auth: 'yes',
    allowed_native_app_url_schemes: 'x',
  });
  const { allowed_origins, ...shown } = set;
  expect((await call(sandbox, 'getApp', { path })).body).toEqual({
    ...before,
    ...shown,
    allowed_domains: allowed_origins,
  });
});

test('another app is not found', async () => {
  await using sandbox = await startSandbox();
  const other = await asOtherApp(sandbox);
  const refused = await refusal(sandbox, 'getApp', { path: { app_id: other.appId } });
  expect(refused).toEqual({ status: 404, body: { error: 'App not found' } });
  expect((await call(other, 'getApp', { path: { app_id: other.appId } })).body.name).toBe('Other');
});
