import { SignerUnavailableError } from '../../../src/keys/signer-errors.ts';
import type { KeyStore } from '../../../src/ports/key-store.ts';

/** A key store that signs, but whose responses are lost as often as the test demands. */
export function lostAnswers() {
  let left = 0;
  return {
    loseNext(count: number): void {
      left = count;
    },
    losing(keyStore: KeyStore): KeyStore {
      return new Proxy(keyStore, {
        get(target, name: keyof KeyStore) {
          if (name !== 'signWithWallet') return target[name];
          return async (...args: Parameters<KeyStore['signWithWallet']>) => {
            const signed = await keyStore.signWithWallet(...args);
            left -= 1;
            if (left >= 0) throw new SignerUnavailableError('the answer was lost');
            return signed;
          };
        },
      });
    },
  };
}
