import type { Duplex } from 'node:stream';
import { systemEntropy } from '../adapters/entropy.ts';
import { logOutput } from '../adapters/log-output.ts';
import { type ServedVault, serveConnection } from '../adapters/signer/serve-connection.ts';
import { randomPhrases } from '../adapters/vault/phrase-entropy.ts';
import { preparedKeys } from '../adapters/vault/prepared-keys.ts';
import { masterKeyIdsOf, productionVault } from '../adapters/vault/production-vault.ts';
import type { SignerConfig } from '../config-signer.ts';
import { assertBackendsAgree } from '../crypto/secp256k1.ts';

interface SignerParts extends ServedVault {
  /** Wipes the keys that were prepared. */
  close(): void;
}

/** The vault of a signer. Throws when the libraries that sign disagree. */
export function servedVault({
  preparedKeys: count,
  logins,
  building,
  signaturesPerRequest,
  ...masterKeys
}: SignerConfig): SignerParts {
  assertBackendsAgree();
  const phraseKeys = preparedKeys(randomPhrases(systemEntropy), { count });
  return {
    vault: productionVault(masterKeys, systemEntropy, {
      ...{ phraseKeys, logins, building, signaturesPerRequest },
    }),
    masterKeyIds: masterKeyIdsOf(masterKeys),
    report,
    close: () => phraseKeys.close(),
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

/** A line of the log, on stderr, in the form of the server's. */
function report(fields: object, msg: string): void {
  logOutput(2).write(`${JSON.stringify({ level: 'error', component: 'signer', ...fields, msg })}\n`);
}
