import { SignerUnavailableError } from '../../../src/keys/signer-errors.ts';
import type { KeyVault } from '../../../src/ports/key-vault.ts';

/** A vault that signs, and whose answers are lost as often as the test says. */
export function lostAnswers() {
  let left = 0;
  return {
    loseNext(count: number): void {
      left = count;
    },
    losing(vault: KeyVault): KeyVault {
      return new Proxy(vault, {
        get(target, name: keyof KeyVault) {
          if (name !== 'signWithWallet') return target[name];
          return async (...args: Parameters<KeyVault['signWithWallet']>) => {
            const signed = await vault.signWithWallet(...args);
            left -= 1;
            if (left >= 0) throw new SignerUnavailableError('the answer was lost');
            return signed;
          };
        },
      });
    },
  };
}
