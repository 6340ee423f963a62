import { createHash } from 'node:crypto';
import { bech32m } from '@scure/base';
import { describe, expect, test } from 'vitest';
import { mnemonicToSeed } from '../../../src/engine/crypto/bip39.ts';
import { bytesToHex, hexToBytes } from '../../../src/engine/crypto/encoding.ts';
import {
  type ChainType,
  chains,
  deriveAtPath,
  derivePrivateKey,
  deriveWallet,
} from '../../../src/engine/signing/chains.ts';
import { checksumAddress } from '../../../src/engine/signing/ethereum/signer.ts';
import { type OfflineMethod, signOffline } from '../../../src/engine/signing/sign-with-key.ts';
import { walletAccount } from '../../../src/engine/signing/ton.ts';
import { decodeTronRawData, encodeTronRawData } from '../../../src/engine/signing/tron/raw-data.ts';
import { readVectors } from './vectors.ts';

const chainTypes = Object.keys(chains) as ChainType[];

describe.each(chainTypes)('%s', (chainType) => {
  test('has known addresses', () => {
    expect(readVectors(chainType, 'addresses')).not.toEqual([]);
  });

  test.each(readVectors(chainType, 'addresses'))(
    'derives $address: $source',
    async ({ mnemonic, index, path, options, ...expected }) => {
      const secret =
        path === undefined
          ? await derivePrivateKey(chainType, { mnemonic }, index)
          : await deriveAtPath(chains[chainType].curve, await mnemonicToSeed(mnemonic), path);
      const { address, publicKey } = await deriveWallet(chainType, secret, options);
      expect({ source: expected.source, address, public_key: publicKey }).toMatchObject(expected);
    },
  );

  test.each(readVectors(chainType, 'secrets'))(
    'has $address for a secret: $source',
    async ({ secret, address }) => {
      expect(await deriveWallet(chainType, hexToBytes(secret))).toMatchObject({ address });
    },
  );

  test.each(readVectors(chainType, 'rpc'))('$method: $source', async ({ secret, method, params, data }) => {
    expect(await signOffline(method as OfflineMethod, hexToBytes(secret), params)).toEqual(data);
  });
});

test.each(readVectors('ethereum', 'checksums'))('$address has the case of EIP-55', ({ address }) => {
  expect(checksumAddress(address.slice(2).toLowerCase())).toBe(address);
  expect(checksumAddress(address.slice(2).toUpperCase())).toBe(address);
});

test.each(readVectors('tron', 'raw_data'))('TRON raw data: $source', ({ raw_data, hex, transaction_id }) => {
  const bytes = encodeTronRawData(raw_data);
  expect(bytesToHex(bytes)).toBe(hex);
  expect(createHash('sha256').update(bytes).digest('hex')).toBe(transaction_id);
  expect(decodeTronRawData(bytes)).toMatchObject(raw_data);
});

test.each(readVectors('ton', 'accounts'))('TON account: $source', ({ public_key, account }) => {
  expect(bytesToHex(walletAccount(hexToBytes(public_key)))).toBe(account);
});

test.each(readVectors('pearl', 'programs'))('pearl address of a program: $source', ({ program, address }) => {
  expect(bech32m.encode('prl', [1, ...bech32m.toWords(hexToBytes(program))])).toBe(address);
});
