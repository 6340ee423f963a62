import { encryptedUrl, type Faults, whole } from './checks.ts';
import type { Setting } from './setting.ts';

const signing = ['serve', 'signer'] as const;
const opening = [...signing, 'keys'] as const;
const connecting = ['serve', 'keys'] as const;

/** The settings of the master keys and of the signer. Only the signer reads the values of its own settings. */
export const keySettings = {
  masterKey: {
    ...{ variable: 'CUSTOS_MASTER_KEY', of: opening, file: true, secret: true },
    required: 'required, or CUSTOS_KMS_URL',
    help: '32 bytes in hex or base64 that seal every wallet key',
  },
  previousMasterKeys: {
    ...{ variable: 'CUSTOS_PREVIOUS_MASTER_KEYS', of: opening, file: true, secret: true },
    ...{ absent: 'none' },
    help: 'previous master keys, comma-separated, until `custos keys rotate` has finished',
  },
  kmsUrl: {
    ...{ variable: 'CUSTOS_KMS_URL', of: opening, absent: 'the master key is local' },
    help: 'a transit engine (Vault, OpenBao) that wraps the wallet keys, in place of a master key',
    read: encryptedUrl,
  },
  kmsKey: {
    ...{ variable: 'CUSTOS_KMS_KEY', of: opening, required: 'required with CUSTOS_KMS_URL' },
    help: 'the name of the key in the transit engine',
  },
  kmsMount: {
    ...{ variable: 'CUSTOS_KMS_MOUNT', of: opening, absent: 'transit', read: path },
    help: 'the path of the transit engine',
  },
  kmsNamespace: {
    ...{ variable: 'CUSTOS_KMS_NAMESPACE', of: opening, absent: 'none' },
    read: path,
    help: 'the namespace of the transit engine',
  },
  kmsToken: {
    ...{ variable: 'CUSTOS_KMS_TOKEN', of: opening, file: true, secret: true },
    required: 'required with CUSTOS_KMS_URL',
    help: 'a token for the transit engine; the signer renews a token that may renew itself',
  },
  userLoginsFile: {
    ...{ variable: 'CUSTOS_USER_LOGINS_FILE', of: signing, absent: 'none' },
    help: 'JSON file, by app id, of the logins whose tokens the signer verifies',
  },
  signaturesPerRequest: {
    ...{ variable: 'CUSTOS_SIGNATURES_PER_REQUEST', of: signing },
    absent: { serve: 'any number', signer: '3' },
    help: 'for how many transactions the signer signs one request of an owner',
    read: whole(1, 1_000),
  },
  signerSocket: {
    ...{ variable: 'CUSTOS_SIGNER_SOCKET', of: connecting, absent: 'the server starts a signer' },
    help: 'the socket of `custos signer`, in place of the settings of the keys',
  },
  signerUid: {
    ...{ variable: 'CUSTOS_SIGNER_UID', of: connecting, absent: 'the user of this process' },
    help: 'the id of the user that the socket must belong to',
    read: whole(0, 2 ** 32 - 2),
  },
} as const satisfies Record<string, Setting>;

/** Reads a path in the key management service. Slashes at its ends are ignored. */
function path(faults: Faults, name: string, text: string): string {
  const trimmed = text.replace(/^\/|\/$/g, '');
  const isPath = /^[\x21-\x7e]{1,256}$/.test(trimmed);
  const isWhole = trimmed.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isPath || !isWhole) faults.push(`${name}: expected a path such as \`team/transit\`, got \`${text}\``);
  return trimmed;
}
