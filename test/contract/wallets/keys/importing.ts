import type {
  SubmitWalletImportRequest,
  WalletImportSupportedChains,
} from '../../../../src/generated/schemas.ts';
import { call } from '../../../support/call.ts';
import type { TestSandbox } from '../../../support/sandbox.ts';
import { type Sealing, sealTo } from './hpke-client.ts';

export interface Import extends Omit<SubmitWalletImportRequest, 'wallet'> {
  readonly chain_type: WalletImportSupportedChains;
  readonly address: string;
  /** The encrypted content: a private key, or a phrase in UTF-8. */
  readonly secret: Uint8Array | string;
  /** With a phrase. */
  readonly index?: number;
  readonly sealing?: Sealing;
}

const asBase64 = (bytes: Uint8Array | undefined): string | undefined =>
  bytes === undefined ? undefined : Buffer.from(bytes).toString('base64');

/** Starts an import and returns the body that submits it. */
export async function prepareImport(
  sandbox: TestSandbox,
  { chain_type, address, secret, index = 0, sealing, ...rest }: Import,
): Promise<SubmitWalletImportRequest> {
  const declared = { chain_type, address, encryption_type: 'HPKE' } as const;
  const begun =
    typeof secret === 'string'
      ? ({ ...declared, entropy_type: 'hd', index } as const)
      : ({ ...declared, entropy_type: 'private-key' } as const);
  const { body: answer } = await call(sandbox, 'initWalletImport', { body: begun });
  const plaintext = typeof secret === 'string' ? new TextEncoder().encode(secret) : secret;
  const sealed = await sealTo(answer.encryption_public_key, plaintext, sealing);
  const { aead_algorithm, info, aad } = sealing ?? {};
  const hpke_config = { aead_algorithm, info: asBase64(info), aad: asBase64(aad) };
  // What is undefined is not sent.
  const config = sealing === undefined ? {} : { hpke_config: JSON.parse(JSON.stringify(hpke_config)) };
  return { ...rest, wallet: { ...begun, ...sealed, ...config } };
}

/** Imports a key completely and returns the wallet. */
export async function importKey(sandbox: TestSandbox, input: Import) {
  const body = await prepareImport(sandbox, input);
  return (await call(sandbox, 'submitWalletImport', { body })).body;
}
