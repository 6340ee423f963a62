import { Account } from '@aptos-labs/ts-sdk';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { base58 } from '@scure/base';
import { mnemonicToSeedSync } from '@scure/bip39';
import { Keypair } from '@solana/web3.js';
import { Keypair as StellarKeypair } from '@stellar/stellar-base';
import { deriveEd25519Path } from '@ton/crypto';
import { TronWeb } from 'tronweb';
import { bytesToHex } from 'viem';
import { mnemonicToAccount, privateKeyToAccount } from 'viem/accounts';
import { Wallet as XrplWallet } from 'xrpl';
import type { WalletImportSupportedChains } from '../../../../src/generated/schemas.ts';

/** A wallet as created by other wallet software. */
export interface ForeignWallet {
  readonly address: string;
  /** 32 bytes. */
  readonly secret: Uint8Array;
}

const unhex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text.replace(/^0x/, ''), 'hex'));

/** SLIP-10 with hardened steps, by the library of another chain. */
async function slip10(phrase: string, path: readonly number[]): Promise<Uint8Array> {
  const seed = Buffer.from(mnemonicToSeedSync(phrase));
  return new Uint8Array(await deriveEd25519Path(seed, [...path]));
}

/** The account of a phrase, as each chain's own library derives it. */
export const accountOf: Readonly<
  Record<WalletImportSupportedChains, (phrase: string, index: number) => Promise<ForeignWallet>>
> = {
  async ethereum(phrase, index) {
    const account = mnemonicToAccount(phrase, { addressIndex: index });
    return { address: account.address, secret: account.getHdKey().privateKey! };
  },
  async tron(phrase, index) {
    const { address, privateKey } = TronWeb.fromMnemonic(phrase, `m/44'/195'/0'/0/${index}`);
    return { address, secret: unhex(privateKey) };
  },
  async xrpl(phrase, index) {
    const wallet = XrplWallet.fromMnemonic(phrase, { derivationPath: `m/44'/144'/0'/0/${index}` });
    return { address: wallet.classicAddress, secret: unhex(wallet.privateKey.slice(-64)) };
  },
  async solana(phrase, index) {
    const secret = await slip10(phrase, [44, 501, index, 0]);
    return { address: Keypair.fromSeed(secret).publicKey.toBase58(), secret };
  },
  async stellar(phrase, index) {
    const secret = await slip10(phrase, [44, 148, index]);
    return { address: StellarKeypair.fromRawEd25519Seed(Buffer.from(secret)).publicKey(), secret };
  },
  async sui(phrase, index) {
    const keypair = Ed25519Keypair.deriveKeypair(phrase, `m/44'/784'/${index}'/0'/0'`);
    const secret = await slip10(phrase, [44, 784, index, 0, 0]);
    return { address: keypair.getPublicKey().toSuiAddress(), secret };
  },
  async aptos(phrase, index) {
    const account = Account.fromDerivationPath({ mnemonic: phrase, path: `m/44'/637'/${index}'/0'/0'` });
    const secret = await slip10(phrase, [44, 637, index, 0, 0]);
    return { address: account.accountAddress.toStringLong(), secret };
  },
};

export const importedChains = Object.keys(accountOf) as WalletImportSupportedChains[];

/** A secret as the contract exports it. */
export function exportedText(chain: string, secret: Uint8Array): string {
  if (chain !== 'solana') return Buffer.from(secret).toString('hex');
  return base58.encode(Keypair.fromSeed(secret).secretKey);
}

/** The address of an Ethereum private key. */
export function ethereumAddressOf(secret: Uint8Array): string {
  return privateKeyToAccount(bytesToHex(secret)).address;
}
