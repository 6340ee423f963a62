import { expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

async function makeOrganization(sandbox: TestSandbox): Promise<{ organization_id: string }> {
  const quorum = await call(sandbox, 'createKeyQuorum', { body: { public_keys: [aliceKey.publicKey] } });
  const { body } = await call(sandbox, 'createOrganization', {
    body: { display_name: 'Acme Europe', default_key_quorum_id: quorum.body.id },
  });
  return { organization_id: body.id };
}

const absent = { status: 404, body: { error: 'Organization secret not found' } };

test('a secret is shown once, listed by its last characters, and stays listed after it is revoked', async () => {
  await using sandbox = await startSandbox();
  const path = await makeOrganization(sandbox);
  const { body: first } = await call(sandbox, 'createOrganizationSecret', { path });
  expect(first).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
    last_four: first.organization_secret.slice(-4),
    created_at: '2026-01-01T00:00:00.000Z',
    revoked_at: null,
    signing_public_key: null,
    organization_secret: expect.stringMatching(/^org_secret_[\w-]{43}$/),
  });
  sandbox.clock.advance(1000);
  const { body: second } = await call(sandbox, 'createOrganizationSecret', { path });
  expect(second.organization_secret).not.toBe(first.organization_secret);

  const shown = ({ organization_secret: _, ...secret }: typeof first) => secret;
  expect((await call(sandbox, 'listOrganizationSecrets', { path })).body).toEqual({
    data: [shown(second), shown(first)],
  });
  const revoke = { path, body: { secret_id: first.id } };
  expect((await call(sandbox, 'revokeOrganizationSecret', revoke)).body).toEqual({ success: true });
  sandbox.clock.advance(1000);
  expect((await call(sandbox, 'revokeOrganizationSecret', revoke)).body).toEqual({ success: true });
  expect((await call(sandbox, 'listOrganizationSecrets', { path })).body.data).toEqual([
    shown(second),
    { ...shown(first), revoked_at: '2026-01-01T00:00:01.000Z' },
  ]);
});

test('a secret is bound to a signing key and unbound again, unless it is revoked', async () => {
  await using sandbox = await startSandbox();
  const path = await makeOrganization(sandbox);
  const { body: secret } = await call(sandbox, 'createOrganizationSecret', { path });
  const bind = (signing_public_key: string | null) => ({
    path,
    body: { secret_id: secret.id, signing_public_key },
  });
  const listed = async () => (await call(sandbox, 'listOrganizationSecrets', { path })).body.data[0];

  const pem = `-----BEGIN PUBLIC KEY-----\n${aliceKey.publicKey}\n-----END PUBLIC KEY-----`;
  await call(sandbox, 'updateOrganizationSecretSigningKey', bind(pem));
  expect(await listed()).toMatchObject({ signing_public_key: aliceKey.publicKey });
  const { status, body } = await refusal(sandbox, 'updateOrganizationSecretSigningKey', bind('no key'));
  expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_data' });
  await call(sandbox, 'updateOrganizationSecretSigningKey', bind(null));
  expect(await listed()).toMatchObject({ signing_public_key: null });

  await call(sandbox, 'revokeOrganizationSecret', { path, body: { secret_id: secret.id } });
  expect(await refusal(sandbox, 'updateOrganizationSecretSigningKey', bind(pem))).toEqual(absent);
});

test('a secret of another organization is not found', async () => {
  await using sandbox = await startSandbox();
  const [path, other] = [await makeOrganization(sandbox), await makeOrganization(sandbox)];
  const { body } = await call(sandbox, 'createOrganizationSecret', { path: other });
  for (const secret_id of [body.id, 'x', '7c1e4a90-2b6d-4f38-9a57-d0e3c8b1f264']) {
    expect(await refusal(sandbox, 'revokeOrganizationSecret', { path, body: { secret_id } })).toEqual(absent);
    expect(
      await refusal(sandbox, 'updateOrganizationSecretSigningKey', {
        path,
        body: { secret_id, signing_public_key: null },
      }),
    ).toEqual(absent);
  }
});
