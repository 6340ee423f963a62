import { systemEntropy } from './entropy.ts';
import { localMasterKey } from './master-key-local.ts';
import { createMasterKeyVault, type MasterKeyVault } from './vault-master-key.ts';

/** A vault whose master key is replaced together with all that it has sealed. */
export interface SandboxVault extends MasterKeyVault {
  use(masterKeyHex: string): void;
}

/** The vault of a sandbox, with a single master key. Uses system randomness even in a seeded sandbox. */
export function sandboxVault(masterKeyHex: string): SandboxVault {
  let current = vaultWith(masterKeyHex);
  return {
    get currentMasterKeyId() {
      return current.currentMasterKeyId;
    },
    seal: (...sealing) => current.seal(...sealing),
    withSecret: (...opening) => current.withSecret(...opening),
    rewrap: (...rewrapping) => current.rewrap(...rewrapping),
    use: (replacement) => {
      current = vaultWith(replacement);
    },
  };
}

function vaultWith(masterKeyHex: string): MasterKeyVault {
  const key = localMasterKey('local', Buffer.from(masterKeyHex, 'hex'), systemEntropy);
  return createMasterKeyVault({ masterKeys: [key], entropy: systemEntropy });
}
