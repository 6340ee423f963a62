import { parsePhoneNumberFromString } from 'libphonenumber-js';
import { normalizeEthereumAddress, normalizeWalletAddress } from '../../../engine/assets/addresses.ts';
import { invalidField } from '../../../errors.ts';
import type { LinkedAccountInput } from '../../../generated/schemas.ts';

/** A linked account in stored form: its unique subject, its look-up name and its wire members. */
export interface LinkedAccountRecord {
  readonly type: string;
  /** Identifies the account among the app's accounts of this type. */
  readonly subject: string;
  /** The public name in lower case for look-ups; null when accounts of this kind have none. */
  readonly username: string | null;
  /** The members of the wire object except `type` and the verification times. Undefined members are left out. */
  readonly details: Readonly<Record<string, unknown>>;
}

type InputOf<Type extends LinkedAccountInput['type']> = Extract<LinkedAccountInput, { type: Type }>;
type Encoded = Omit<LinkedAccountRecord, 'type'>;
type Encoders = {
  readonly [Type in LinkedAccountInput['type']]: (input: InputOf<Type>, pointer: string) => Encoded;
};

/** Converts an e-mail address to lower case, the form in which addresses are stored and compared. */
export function normalizeEmail(address: string): string {
  return address.toLowerCase();
}

/**
 * Formats a phone number in international form with spaces (`+1 555 555 0100`). Numbers without a country code are read
 * as US numbers. Returns undefined when the string is not a phone number.
 */
export function normalizePhoneNumber(number: string): string | undefined {
  const parsed = parsePhoneNumberFromString(number, 'US');
  // CHOICE: numbers need only be possible, because test numbers (555) are unassigned. Numbers with an extension are
  // refused, because they cannot receive messages.
  return parsed?.isPossible() && parsed.ext === undefined ? parsed.formatInternational() : undefined;
}

/** Adds the discriminator `#0` to Discord names of the newer form. */
export function normalizeDiscordUsername(username: string): string {
  return username.includes('#') ? username : `${username}#0`;
}

function requirePhoneNumber(number: string, pointer: string): string {
  const normal = normalizePhoneNumber(number);
  if (normal === undefined) throw invalidField(`${pointer}/number`, 'expected a phone number');
  return normal;
}

/** Returns the record of an account at a provider. The account is found by its subject, and also by its public name. */
function oauth(details: {
  readonly subject: string;
  readonly username?: string | null | undefined;
  readonly [name: string]: unknown;
}): Encoded {
  return { subject: details.subject, username: lower(details.username), details };
}

const lower = (name: string | null | undefined): string | null => name?.toLowerCase() ?? null;

/**
 * Converts the accounts of each kind to their records. A member that the importer omits is null on the wire if the
 * response schema requires it.
 */
const encoders: Encoders = {
  email: ({ address }) => {
    const normal = normalizeEmail(address);
    return { subject: normal, username: null, details: { address: normal } };
  },
  phone: ({ number }, pointer) => {
    const normal = requirePhoneNumber(number, pointer);
    // The schema of the API has the number under both names.
    return { subject: normal, username: null, details: { phoneNumber: normal, number: normal } };
  },
  wallet: ({ address, chain_type }, pointer) => {
    const normal = normalizeWalletAddress(chain_type, address);
    if (normal === undefined) {
      throw invalidField(`${pointer}/address`, `expected an address of \`${chain_type}\``);
    }
    const details = { address: normal, chain_type, wallet_client: 'unknown' };
    return { subject: normal, username: null, details };
  },
  google_oauth: ({ subject, email, name }) => oauth({ subject, email, name }),
  twitter_oauth: ({ subject, name, username, profile_picture_url = null }) =>
    oauth({ subject, name, username, profile_picture_url }),
  discord_oauth: ({ subject, username, email = null }) =>
    oauth({ subject, username: normalizeDiscordUsername(username), email }),
  github_oauth: ({ subject, username, name = null, email = null }) =>
    oauth({ subject, username, name, email }),
  spotify_oauth: ({ subject, email = null, name = null }) => oauth({ subject, email, name }),
  instagram_oauth: ({ subject, username }) => oauth({ subject, username }),
  tiktok_oauth: ({ subject, username, name }) => oauth({ subject, username, name }),
  line_oauth: ({ subject, name = null, email = null, profile_picture_url = null }) =>
    oauth({ subject, name, email, profile_picture_url }),
  twitch_oauth: ({ subject, username = null }) => oauth({ subject, username }),
  apple_oauth: ({ subject, email = null }) => oauth({ subject, email }),
  linkedin_oauth: ({ subject, email = null, name, vanityName: vanity_name }) =>
    oauth({ subject, email, name, vanity_name }),
  farcaster: ({ type: _, ...account }, pointer) => {
    const owner_address = normalizeEthereumAddress(account.owner_address);
    if (owner_address === undefined) {
      throw invalidField(`${pointer}/owner_address`, 'expected an address of `ethereum`');
    }
    return {
      subject: String(account.fid),
      username: lower(account.username),
      // The wire form has the picture under both names.
      details: { ...account, owner_address, profile_picture: account.profile_picture_url },
    };
  },
  telegram: ({ type: _, ...account }) => {
    const {
      telegram_user_id,
      first_name = null,
      last_name = null,
      username = null,
      photo_url = null,
    } = account;
    return {
      subject: telegram_user_id,
      username: lower(username),
      details: { telegram_user_id, first_name, last_name, username, photo_url },
    };
  },
  custom_auth: ({ custom_user_id }) => ({
    subject: custom_user_id,
    username: null,
    details: { custom_user_id },
  }),
  passkey: ({ credential_id, credential_public_key }) => ({
    subject: credential_id,
    username: null,
    // CHOICE: an imported passkey is not enrolled in MFA. The browser, operating system and device that created it
    // are unknown.
    details: { credential_id, public_key: credential_public_key, enrolled_in_mfa: false },
  }),
};

/**
 * Converts an account from a request to its stored form.
 *
 * @param pointer JSON pointer to the account in the request body; empty when it is the body.
 * @throws ApiError invalid_data for an invalid number or address.
 */
export function encodeLinkedAccount(input: LinkedAccountInput, pointer: string): LinkedAccountRecord {
  const encode = encoders[input.type] as (input: LinkedAccountInput, pointer: string) => Encoded;
  return { type: input.type, ...encode(input, pointer) };
}

/** The kinds of which a user may have several accounts. A user has at most one account of every other kind. */
export const REPEATABLE_TYPES: ReadonlySet<string> = new Set([
  'wallet',
  'smart_wallet',
  'passkey',
  'cross_app',
  'authorization_key',
]);
