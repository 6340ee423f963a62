import { expect, test } from 'vitest';
import { serveWithSigner } from '../../support/signer/serve-with-signer.ts';
import { startTransitService } from '../../support/transit-service.ts';

test('a server on a key management service renews its token, and is not ready while that refuses', async () => {
  await using service = await startTransitService('custos', { mount: 'team/transit', namespace: 'eu' });
  Object.assign(service.lease, { seconds: 3_600, renewable: true, endsAtS: 3_600 });
  const server = await serveWithSigner({
    settings: {
      CUSTOS_MASTER_KEY_FILE: undefined,
      CUSTOS_KMS_URL: service.url,
      CUSTOS_KMS_KEY: 'custos',
      CUSTOS_KMS_MOUNT: 'team/transit',
      CUSTOS_KMS_NAMESPACE: 'eu',
      CUSTOS_KMS_TOKEN: service.token,
      CUSTOS_ADMIN_PORT: '0',
    },
  });
  try {
    const admin = /"admin":"([^"]+)".*"ready"/.exec(server.output().stdout)![1]!;
    const readiness = async () => (await fetch(`${admin}/readyz`)).status;
    const create = () => server.call('/v1/wallets', { chain_type: 'ethereum' });
    const { status, body } = await create();
    expect(status).toBe(200);
    const sign = () =>
      server.call(`/v1/wallets/${(body as { id: string }).id}/rpc`, {
        ...{ method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } },
      });
    expect(await readiness()).toBe(200);
    expect(service.requests.map(({ path }) => path)).toContain('/v1/auth/token/renew-self');

    const token = /s\.[0-9a-f]{24}/;
    service.interrupt((response) => response.writeHead(403).end('{"errors":["permission denied"]}'));
    // A result counts for a second.
    await expect.poll(readiness, { timeout: 30_000 }).toBe(503);
    for (const ask of [create, sign])
      expect(await ask()).toMatchObject({ status: 503, retryAfter: expect.stringMatching(/^\d+$/) });
    expect((await fetch(`${admin}/healthz`)).status).toBe(200);
    service.interrupt(undefined);
    await expect.poll(readiness, { timeout: 30_000 }).toBe(200);
    expect((await sign()).status).toBe(200);
    expect(server.output().stdout + server.output().stderr).not.toMatch(token);
  } finally {
    await server.end();
  }
});
