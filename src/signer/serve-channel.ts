import type { Duplex } from 'node:stream';
import { systemEntropy } from '../adapters/entropy.ts';
import { logOutput } from '../adapters/log-output.ts';
import { type ServedVault, serveConnection } from '../adapters/signer/serve-connection.ts';
import { masterKeyIdsOf, productionVault } from '../adapters/vault/production-vault.ts';
import type { SigningJournal } from '../authorization/spent-requests.ts';
import type { SignerConfig } from '../config-signer.ts';
import { assertBackendsAgree } from '../crypto/secp256k1.ts';

export interface SignerParts extends ServedVault {
  /** Stops renewing the token of the key management service. */
  close(): void;
}

/** The vault of a signer. Throws when the libraries that sign disagree. */
export function servedVault(
  { logins, building, signaturesPerRequest, ...masterKeys }: SignerConfig,
  journal?: SigningJournal,
): SignerParts {
  assertBackendsAgree();
  const ending = new AbortController();
  return {
    vault: productionVault(masterKeys, systemEntropy, {
      ...{ logins, building, signaturesPerRequest, journal },
      tokenRenewal: { signal: ending.signal, report },
    }),
    masterKeyIds: masterKeyIdsOf(masterKeys),
    report,
    close: () => ending.abort(),
  };
}

/** Answers the calls of the server that has started this process, and ends with it. */
export function serveChannel(channel: Duplex, served: SignerParts): void {
  channel.on('close', () => {
    served.close();
    process.exit(0);
  });
  serveConnection(channel, served);
}

/** CHOICE: more lines are dropped and counted: a caller can provoke any number of them. */
const MOST_LINES = 10;
const WINDOW_MS = 1_000;

let windowStartMs = Number.NEGATIVE_INFINITY;
let lines = 0;
let dropped = 0;

/** A line of the log, on stderr, in the form of the server's. */
function report(fields: object, msg: string): void {
  const nowMs = performance.now();
  if (nowMs - windowStartMs >= WINDOW_MS) [windowStartMs, lines] = [nowMs, 0];
  if (lines >= MOST_LINES) {
    dropped += 1;
    return;
  }
  lines += 1;
  const more = dropped === 0 ? {} : { dropped };
  dropped = 0;
  const line = JSON.stringify({ level: 'error', component: 'signer', ...fields, ...more, msg });
  logOutput(2).write(`${line}\n`);
}
