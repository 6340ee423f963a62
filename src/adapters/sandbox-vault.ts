import { systemEntropy } from './entropy.ts';
import { localMasterKey } from './master-key-local.ts';
import { createMasterKeyVault, type MasterKeyVault } from './vault-master-key.ts';

/** The vault of a sandbox, with a single master key. Uses system randomness even in a seeded sandbox. */
export function sandboxVault(masterKeyHex: string): MasterKeyVault {
  const key = localMasterKey('local', Buffer.from(masterKeyHex, 'hex'), systemEntropy);
  return createMasterKeyVault({ masterKeys: [key], entropy: systemEntropy });
}
