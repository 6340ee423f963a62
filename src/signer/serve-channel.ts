import { writeSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { systemEntropy } from '../adapters/entropy.ts';
import { type ServedVault, serveConnection } from '../adapters/signer/serve-connection.ts';
import { masterKeyIdsOf, productionVault } from '../adapters/vault/production-vault.ts';
import type { MasterKeySettings } from '../config-signer.ts';
import { assertBackendsAgree } from '../crypto/secp256k1.ts';

/** The vault of a signer. Throws when the libraries that sign disagree. */
export function servedVault(masterKeys: MasterKeySettings): ServedVault {
  assertBackendsAgree();
  return {
    vault: productionVault(masterKeys, systemEntropy),
    masterKeyIds: masterKeyIdsOf(masterKeys),
    report,
  };
}

/** Answers the calls of the server that has started this process, and ends with it. */
export function serveChannel(channel: Duplex, served: ServedVault): void {
  channel.on('close', () => process.exit(0));
  serveConnection(channel, served);
}

/** A line of the log, on stderr, in the form of the server's. */
function report(fields: object, msg: string): void {
  writeSync(2, `${JSON.stringify({ level: 'error', component: 'signer', ...fields, msg })}\n`);
}
