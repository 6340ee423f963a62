import fc from 'fast-check';
import { encodeFunctionData, erc20Abi, parseUnits } from 'viem';
import { describe, expect, test } from 'vitest';
import { assetsOf, type KnownAsset } from '../../../src/engine/assets/known-assets.ts';
import { type KnownChain, knownChains } from '../../../src/engine/assets/known-chains.ts';
import { isTransferOf } from '../../../src/engine/authorization/requested/match-transfer.ts';
import { encodeSolanaTransfer } from '../../../src/engine/signing/solana/encode-transfer.ts';

// What the signer compares, for each asset that has a name: all that it needs to know of them is in its tables.

const hexOfTron = '41a614f803b6fd780986a42c78ec9c7f77e6ded13c';
const receivers: Record<string, string> = {
  ethereum: '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0',
  solana: 'So1ver1111111111111111111111111111111111111',
  tron: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
};
const assets = [true, false]
  .flatMap((isTestnet) => knownChains({ isTestnet }))
  .flatMap((chain) =>
    assetsOf(chain).map((asset) => [`${asset.asset} on ${chain.name}`, chain, asset] as const),
  );

function taskOf(chain: KnownChain, asset: KnownAsset, rawAmount: bigint) {
  const { tokenAddress, decimals } = asset;
  const evm = chain.chainType === 'tron' ? `0x${hexOfTron.slice(2)}` : receivers.ethereum!;
  const args = [evm as `0x${string}`, rawAmount] as const;
  const data = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args });
  const sign = (method: string, params: object) => ({ kind: 'sign', method, params }) as const;
  if (chain.chainType === 'ethereum') {
    const moved =
      tokenAddress === null ? { to: evm, value: `0x${rawAmount.toString(16)}` } : { to: tokenAddress, data };
    const chainId = Number(chain.caip2.split(':')[1]);
    return sign('eth_signTransaction', {
      transaction: { ...moved, chain_id: chainId, nonce: 1, gas_limit: 1 },
    });
  }
  if (chain.chainType === 'solana') {
    const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
    const mint = tokenAddress === null ? undefined : { address: tokenAddress, decimals, tokenProgram };
    const from = 'HzwqbKZw8HxMN6bF2yFZNrht3c2iXXzpKcFmq7uBEDtr';
    const wire = encodeSolanaTransfer({ from, to: receivers.solana!, mint, rawAmount });
    return sign('signTransaction', { transaction: Buffer.from(wire).toString('base64') });
  }
  const owner = { owner_address: `41${'11'.repeat(20)}` };
  const contract =
    tokenAddress === null
      ? { type: 'TransferContract', ...owner, to_address: hexOfTron, amount: Number(rawAmount) }
      : { type: 'TriggerSmartContract', ...owner, contract_address: hexOfTron, data: data.slice(2) };
  const block = { ref_block_bytes: '0000', ref_block_hash: '00'.repeat(8), expiration: 1, timestamp: 1 };
  return sign('tron_signTransaction', {
    raw_data: { ...block, fee_limit: 100_000_000, contract: [contract] },
  });
}

describe.each(assets)('%s', (_, chain, asset) => {
  test('is compared to its smallest unit', () => {
    const amounts = fc.tuple(
      fc.nat({ max: 999 }),
      fc.stringMatching(new RegExp(`^[0-9]{1,${asset.decimals}}$`)),
    );
    fc.assert(
      fc.property(amounts, fc.boolean(), ([whole, fraction], isInSource) => {
        const amount = `${whole}.${fraction}`;
        const raw = parseUnits(amount, asset.decimals);
        fc.pre(raw > 0n);
        const source = { asset: asset.asset, chain: chain.name };
        const destination = { address: receivers[chain.chainType] };
        const body = isInSource
          ? { source: { ...source, amount }, destination }
          : { source, amount, destination };
        const isAsked = (rawAmount: bigint) =>
          isTransferOf(body, taskOf(chain, asset, rawAmount), {
            chainType: chain.chainType,
            hasExchange: false,
          });
        expect([isAsked(raw), isAsked(raw + 1n), isAsked(raw * 10n)]).toEqual([true, false, false]);
      }),
      { numRuns: 20 },
    );
  });
});
