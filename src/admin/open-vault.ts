import { systemEntropy } from '../adapters/entropy.ts';
import { silentLog } from '../adapters/log.ts';
import { connectToSocket } from '../adapters/signer/connect-socket.ts';
import { openSignerVault } from '../adapters/signer/signer-vault.ts';
import { productionVault } from '../adapters/vault/production-vault.ts';
import type { VaultSettings } from '../config-signer.ts';
import type { KeyVault } from '../ports/key-vault.ts';

/** Runs a command's work with the vault of a production server: its signer, or the master keys themselves. */
export async function withVault<T>(
  settings: VaultSettings,
  work: (vault: KeyVault) => Promise<T>,
): Promise<T> {
  if (settings.kind === 'local') return work(productionVault(settings.masterKeys, systemEntropy));
  const owner = { path: settings.path, uid: settings.uid ?? process.getuid?.() ?? -1 };
  const signer = await openSignerVault(() => connectToSocket(owner), { log: silentLog });
  try {
    return await work(signer.vault);
  } finally {
    await signer.close();
  }
}
