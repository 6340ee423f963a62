const ANY_CHAIN = ['exportPrivateKey', 'exportSeedPhrase'];
const MOVE_VALUE = ['transfer', 'earn_deposit', 'earn_withdraw'];

const METHODS_BY_CHAIN: Readonly<Record<string, readonly string[]>> = {
  ethereum: [
    'eth_sendTransaction',
    'eth_signTransaction',
    'eth_signUserOperation',
    'eth_signTypedData_v4',
    'personal_sign',
    'eth_sign7702Authorization',
    'wallet_sendCalls',
    ...MOVE_VALUE,
  ],
  solana: ['signTransaction', 'signAndSendTransaction', 'signMessage', ...MOVE_VALUE],
  tron: [
    'tron_sendTransaction',
    'tron_signTransaction',
    'signTransactionBytes',
    'signRawMessageBytes',
    'transfer',
  ],
  sui: ['signTransactionBytes', 'signRawMessageBytes'],
  xrpl: ['xrpl_signTransaction'],
};

/**
 * Returns the methods for which rules of a chain type can be written. `*` is available on every chain but xrpl
 * (behavior of the published service).
 */
export function ruleMethodsOf(chainType: string): readonly string[] {
  // CHOICE: on chains with only raw_sign, requests are evaluated as signRawMessageBytes.
  const own = METHODS_BY_CHAIN[chainType] ?? ['signRawMessageBytes'];
  return [...own, ...ANY_CHAIN, ...(chainType === 'xrpl' ? [] : ['*'])];
}
