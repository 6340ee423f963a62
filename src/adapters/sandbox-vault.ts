import { systemEntropy } from './entropy.ts';
import { localMasterKey } from './master-key-local.ts';
import { createMasterKeyVault, type MasterKeyVault } from './vault-master-key.ts';

/** The vault of a sandbox: one master key of its own making. Seals are random in any case, also under a seed. */
export function sandboxVault(masterKeyHex: string): MasterKeyVault {
  const key = localMasterKey('local', Buffer.from(masterKeyHex, 'hex'), systemEntropy);
  return createMasterKeyVault({ masterKeys: [key], entropy: systemEntropy });
}
