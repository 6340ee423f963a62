import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from 'node:tls';
import { Agent } from 'undici';
import { expect, test } from 'vitest';
import { makeCertificate } from '../../../src/adapters/certificate.ts';
import { systemClock, systemEntropy } from '../../../src/adapters/runtime.ts';
import { isLong } from '../../figures/figure.ts';
import { serveSettings } from '../../support/postgres/serve-settings.ts';
import { startCustos, waitFor } from '../../support/run-custos.ts';

// docs/production.md, "Renewing the certificate".

/** The serial number that a new connection gets. */
function servedBy(url: string): Promise<string> {
  const { hostname: host, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate()!.serialNumber);
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

test.each(isLong ? ['1', '2'] : ['1'])(
  'a certificate is renewed without an outage (workers: %s)',
  async (workers) => {
    const { env, ca } = await serveSettings();
    const custos = await startCustos(['serve', '--workers', workers], { env });
    let isOver = false;
    try {
      const lines = () =>
        custos
          .output()
          .stdout.split('\n')
          .slice(0, -1)
          .map(
            (line) =>
              JSON.parse(line) as { msg: string; url: string; worker?: number; err?: { message: string } },
          );
      const said = (message: string) => lines().filter(({ msg }) => msg === message);
      await waitFor(() => said('ready').some(({ worker }) => worker === undefined));
      const { url } = said('ready').find(({ worker }) => worker === undefined)!;
      const first = new X509Certificate(readFileSync(env.CUSTOS_TLS_CERT!));
      expect(await servedBy(url)).toBe(first.serialNumber);

      // A client that keeps its connection, and asks all the time.
      const agent = new Agent({ connect: { ca, servername: 'localhost' }, connections: 1 });
      const failures: unknown[] = [];
      let answered = 0;
      const asking = (async () => {
        while (!isOver) {
          try {
            const { statusCode, body } = await agent.request({
              origin: url,
              path: '/v1/wallets',
              method: 'GET',
            });
            await body.dump();
            if (statusCode === 401) answered += 1;
            else failures.push(statusCode);
          } catch (error) {
            failures.push(error);
          }
          await pause(5);
        }
      })();

      const next = await makeCertificate({ clock: systemClock, entropy: systemEntropy });
      const renewed = new X509Certificate(next.cert);
      const isSingle = workers === '1';
      // Between two copies the files do not belong together.
      writeFileSync(env.CUSTOS_TLS_CERT!, next.cert);
      custos.process.kill('SIGHUP');
      await waitFor(
        () => lines().some(({ msg }) => /cannot be used|could not be replaced/.test(msg)),
        60_000,
      );
      if (isSingle) {
        expect(lines().find(({ msg }) => msg.includes('cannot be used'))?.err?.message).toContain(
          'CUSTOS_TLS_KEY: expected the private key of CUSTOS_TLS_CERT',
        );
      }
      expect(await servedBy(url)).toBe(first.serialNumber);

      writeFileSync(env.CUSTOS_TLS_KEY!, next.key);
      if (isSingle) {
        custos.process.kill('SIGHUP');
        const signalledMs = performance.now();
        while ((await servedBy(url)) !== renewed.serialNumber && performance.now() < signalledMs + 30_000)
          await pause(5);
        const tookMs = performance.now() - signalledMs;
        expect(tookMs).toBeLessThan(30_000);
        await waitFor(() => said('the certificate was replaced').length === 1);
        // The open connection goes on.
        const before = answered;
        await waitFor(() => answered >= before + 5);
        expect(failures).toEqual([]);
      } else {
        isOver = true;
        await asking;
        expect(failures).toEqual([]);
        custos.process.kill('SIGHUP');
        await waitFor(() => said('all workers were replaced').length === 1, 60_000);
      }
      isOver = true;
      await asking;
      expect(answered).toBeGreaterThan(0);
      expect(await servedBy(url)).toBe(renewed.serialNumber);
      await agent.destroy();
      expect((await custos.stop()).code).toBe(0);
    } finally {
      isOver = true;
      if (custos.process.exitCode === null) await custos.stop('SIGKILL');
    }
  },
);
