import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeCertificate } from '../../../src/adapters/certificate.ts';
import { systemClock, systemEntropy } from '../../../src/adapters/runtime.ts';
import { temporaryFolder } from '../run-custos.ts';
import { freshPostgres } from './borrow-database.ts';

/** The environment for `custos serve` with a separate database, certificate and master key, on free ports. */
export async function serveSettings(): Promise<{ env: Record<string, string>; ca: string }> {
  const folder = temporaryFolder();
  const { cert, key, ca } = await makeCertificate({ clock: systemClock, entropy: systemEntropy });
  writeFileSync(join(folder, 'cert.pem'), cert);
  writeFileSync(join(folder, 'key.pem'), key);
  const env = {
    DATABASE_URL: await freshPostgres(),
    CUSTOS_TLS_CERT: join(folder, 'cert.pem'),
    CUSTOS_TLS_KEY: join(folder, 'key.pem'),
    CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'),
    CUSTOS_PUBLIC_URLS: 'https://api.acme.example',
    CUSTOS_HOST: '127.0.0.1',
    CUSTOS_PORT: '0',
    CUSTOS_ADMIN_PORT: '0',
    CUSTOS_DRAIN_SECONDS: '0',
  };
  return { env, ca };
}
