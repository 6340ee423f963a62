import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  comparedOperations,
  requireRequested,
} from '../../../src/engine/authorization/requested/match-task.ts';
import { automatingPaths } from '../../../src/engine/authorization/wallet-authority.ts';
import { type ChainType, chains, rpcMethodsOf } from '../../../src/engine/signing/chains.ts';

// The table of SECURITY.md says for each operation what the signer compares with the signed request.

/** The operations of each row, as the checks name them. */
const rows: Readonly<Record<string, readonly string[]>> = {
  'messages, typed data, hashes, user operations, EIP-7702 authorizations, `raw_sign`, and transactions that are only signed':
    [
      ...[
        '/raw_sign',
        '/rpc',
        'personal_sign',
        'eth_signTypedData_v4',
        'eth_signTransaction',
        'secp256k1_sign',
      ],
      ...['eth_signUserOperation', 'eth_sign7702Authorization', 'signMessage', 'signTransaction'],
      ...['tron_signTransaction', 'aptos_signTransaction', 'near_signTransaction', 'xrpl_signTransaction'],
      ...['signMessageWithIdentityKey'],
    ],
  exports: ['/export', 'exportPrivateKey', 'exportSeedPhrase'],
  '`eth_sendTransaction` without `sponsor`': ['eth_sendTransaction'],
  '`wallet_sendCalls`, sponsored transactions': ['wallet_sendCalls'],
  '`signAndSendTransaction`, `tron_sendTransaction`': ['signAndSendTransaction', 'tron_sendTransaction'],
  'transfers, on EVM chains, Solana and Tron': ['/transfer'],
  'operations on Spark': [
    ...['transfer', 'transferTokens', 'claimStaticDeposit', 'withdraw', 'payLightningInvoice'],
  ],
  swaps: ['/swap'],
  'earn actions': [
    ...['deposit', 'withdraw', 'incentive/claim', 'fees/collect'].map((action) => `/earn/ethereum/${action}`),
  ],
  payouts: ['/payout/fiat'],
  'change of the owner, of the additional signers or of the policies': ['PATCH'],
  automations: ['/automations/attach', '/deposit_accounts/crypto'],
};

const table = readFileSync(new URL('../../../SECURITY.md', import.meta.url), 'utf8')
  .split('\n| request | what is compared |')[1]!
  .split('\n\n')[0]!
  .split('\n')
  .slice(2)
  .map((line) => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '')));

test('each row of the table is about operations that the signer compares, and each of these has a row', () => {
  expect(table.map(([request]) => request)).toEqual(Object.keys(rows));
  const { paths, sendingMethods } = comparedOperations;
  const methods = (Object.keys(chains) as ChainType[]).flatMap((chainType) => rpcMethodsOf(chainType));
  const known = new Set([...paths, ...sendingMethods, ...Object.keys(automatingPaths), ...methods, 'PATCH']);
  const explained = Object.values(rows).flat();
  expect([...known].filter((name) => !explained.includes(name))).toEqual(KEYLESS);
  expect(explained.filter((name) => !known.has(name))).toEqual([]);
  expect(new Set(explained).size).toBe(explained.length);
});

/** Methods of Spark that use no key. */
const KEYLESS: readonly string[] = [
  'getBalance',
  'getStaticDepositAddress',
  'getClaimStaticDepositQuote',
  'createLightningInvoice',
  'getWithdrawalFeeQuote',
];

test('each row says what is compared and what a policy judges', () => {
  for (const [request, compared, judged] of table) {
    expect([request, compared?.length ?? 0, judged?.length ?? 0]).toEqual([
      request,
      expect.toSatisfy((length: number) => length > 10),
      expect.toSatisfy((length: number) => length > 5),
    ]);
  }
});

test('a request of any other operation signs nothing', () => {
  const task = { kind: 'sign', method: 'personal_sign', params: {} } as const;
  const asked = { chainType: 'ethereum', appId: 'app', building: undefined };
  for (const subpath of ['', '/balance', ...Object.keys(automatingPaths), '/__proto__', '/constructor']) {
    const request = {
      method: 'POST',
      path: `/v1/wallets/id${subpath}`,
      body: { method: 'personal_sign', params: {} },
    };
    expect(() => requireRequested(request as never, { ...asked, subpath }, task)).toThrow(
      'asks for something else',
    );
  }
});
