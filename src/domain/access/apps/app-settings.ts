import { createPublicKey, type KeyObject } from 'node:crypto';
import { invalidField } from '../../../errors.ts';
import type { AppResponse } from '../../../generated/schemas.ts';
import type { Ids } from '../../../ports/runtime.ts';
import { checkSafeguard, isSafeguard } from '../../base/safeguards/safeguards.ts';
import type { StoredSeal } from '../../base/sealed-keys/sealed-keys.ts';
import type { App, AppSettings } from './app.entity.ts';
import { checkDepositConfigs, DEPOSIT_CONFIGS_SETTING } from './deposit-configs.ts';
import {
  checkDeviceFlow,
  DEVICE_FLOW_SETTING,
  type DeviceFlowSettings,
  readDeviceFlowSetting,
} from './device-flow-settings.ts';
import { checkSmartAccountFactory, SMART_ACCOUNT_FACTORY_SETTING } from './smart-account-factory.ts';

/** How to verify tokens of the app's own login. Either `jwks_url` or `verification_key` is set. */
export interface JwtAuthSettings {
  /** The URL of the issuer's key set (RFC 7517). */
  readonly jwks_url?: string;
  /** SubjectPublicKeyInfo PEM of one RSA or P-256 key. */
  readonly verification_key?: string;
  /** Name of the claim that contains the user's id in the app's login. */
  readonly user_id_claim: string;
  /** Accepted `aud` values. If the list is empty, every value is accepted. */
  readonly audiences: readonly string[];
}

/** A user who can log in with a fixed code. */
export interface TestAccountSettings {
  readonly id: string;
  readonly email: string;
  readonly phone_number: string;
  /**
   * Six digits. Stored settings have the sealed code instead. Absent in a request that keeps the code of a known
   * account.
   */
  readonly otp_code?: string;
  readonly sealed_otp_code?: StoredSeal;
  readonly created_at_ms: number;
  readonly updated_at_ms: number;
}

/** The app settings that this server uses, under their stored names. */
interface KnownAppSettings {
  readonly jwt_auth?: JwtAuthSettings;
  /** Origins of the web pages that may call the server in users' browsers. */
  readonly allowed_origins: readonly string[];
  readonly test_accounts: readonly TestAccountSettings[];
  /** Whether logins return an identity token in addition to the access token. */
  readonly identity_tokens: boolean;
  readonly device_flow: DeviceFlowSettings;
}

/** Reads the known settings of an app. Settings that were never set get their defaults. */
export function readAppSettings(settings: AppSettings): KnownAppSettings {
  const known = settings as Partial<KnownAppSettings>;
  return {
    ...(known.jwt_auth === undefined ? {} : { jwt_auth: known.jwt_auth }),
    allowed_origins: known.allowed_origins ?? [],
    test_accounts: known.test_accounts ?? [],
    identity_tokens: known.identity_tokens ?? false,
    device_flow: readDeviceFlowSetting(known.device_flow),
  };
}

/** The source of ids and the time of creation for new test accounts and deposit configurations. */
interface SettingDefaults {
  readonly ids: Pick<Ids, 'cuid'>;
  readonly nowMs: number;
}

/**
 * Checks an operator's settings and returns them in stored form. Unknown settings pass unchanged, and null removes a
 * setting. A test account without an id or times is given new ones. An account with an id may omit its code, which
 * `keepTestCodes` fills in. The codes of test accounts stay plain until `sealTestCodes` seals them.
 *
 * @throws ApiError invalid_data that names the setting.
 */
export function checkAppSettings(settings: AppSettings, defaults: SettingDefaults): AppSettings {
  return Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [
      name,
      value === null ? null : checkSetting(name, value, defaults),
    ]),
  );
}

function checkSetting(name: string, value: unknown, defaults: SettingDefaults): unknown {
  if (isSafeguard(name)) return checkSafeguard(name, value);
  switch (name) {
    case 'jwt_auth':
      return checkJwtAuth(value);
    case 'allowed_origins':
      return checkOrigins(value);
    case 'test_accounts':
      return checkTestAccounts(value, defaults);
    case 'identity_tokens':
      return readBoolean(value, '/settings/identity_tokens');
    case DEVICE_FLOW_SETTING:
      return checkDeviceFlow(value);
    case DEPOSIT_CONFIGS_SETTING:
      return checkDepositConfigs(value, defaults.ids);
    case SMART_ACCOUNT_FACTORY_SETTING:
      return checkSmartAccountFactory(value);
    default:
      return value;
  }
}

function checkJwtAuth(value: unknown): JwtAuthSettings {
  const pointer = '/settings/jwt_auth';
  const fields = readObject(value, pointer, ['jwks_url', 'verification_key', 'user_id_claim', 'audiences']);
  const { jwks_url: jwksUrl, verification_key: verificationKey } = fields;
  if ((jwksUrl === undefined) === (verificationKey === undefined)) {
    throw invalidField(pointer, 'expected either `jwks_url` or `verification_key`');
  }
  return {
    ...(jwksUrl === undefined ? {} : { jwks_url: checkJwksUrl(jwksUrl, `${pointer}/jwks_url`) }),
    ...(verificationKey === undefined
      ? {}
      : { verification_key: checkVerificationKey(verificationKey, `${pointer}/verification_key`) }),
    user_id_claim: readText(fields.user_id_claim ?? 'sub', `${pointer}/user_id_claim`),
    audiences: readList(fields.audiences ?? [], `${pointer}/audiences`).map((audience, index) =>
      readText(audience, `${pointer}/audiences/${index}`),
    ),
  };
}

function checkJwksUrl(value: unknown, pointer: string): string {
  const text = readText(value, pointer);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLoopback = url !== undefined && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url?.protocol !== 'https:' && !(url?.protocol === 'http:' && isLoopback)) {
    throw invalidField(pointer, 'expected an https URL; plain http is accepted on loopback only');
  }
  return text;
}

function checkVerificationKey(value: unknown, pointer: string): string {
  const key = readPublicKey(readText(value, pointer), pointer);
  if (!isStrongEnough(key))
    throw invalidField(pointer, 'expected an RSA key of 2048 bits or more, or a P-256 key');
  return key.export({ format: 'pem', type: 'spki' }).toString();
}

/**
 * Returns whether a key is strong enough to verify tokens: RSA of 2048 bits or more (RFC 7518, section 3.3), or P-256.
 */
export function isStrongEnough(key: KeyObject): boolean {
  const details = key.asymmetricKeyDetails;
  if (key.asymmetricKeyType === 'rsa') return (details?.modulusLength ?? 0) >= 2048;
  return key.asymmetricKeyType === 'ec' && details?.namedCurve === 'prime256v1';
}

function readPublicKey(pem: string, pointer: string): KeyObject {
  if (pem.includes('PRIVATE KEY')) throw invalidField(pointer, 'expected a public key, not a private one');
  try {
    return createPublicKey(pem);
  } catch {
    throw invalidField(pointer, 'expected a PEM public key or certificate');
  }
}

function checkOrigins(value: unknown): string[] {
  return readList(value, '/settings/allowed_origins').map((item, index) => {
    const pointer = `/settings/allowed_origins/${index}`;
    const origin = readText(item, pointer);
    if (!URL.canParse(origin) || new URL(origin).origin !== origin) {
      throw invalidField(pointer, 'expected an origin such as `https://app.example.com`, without a path');
    }
    return origin;
  });
}

function checkTestAccounts(value: unknown, { ids, nowMs }: SettingDefaults): TestAccountSettings[] {
  return readList(value, '/settings/test_accounts').map((item, index) => {
    const pointer = `/settings/test_accounts/${index}`;
    const names = ['id', 'email', 'phone_number', 'otp_code', 'created_at_ms', 'updated_at_ms'];
    const fields = readObject(item, pointer, names);
    const code =
      fields.otp_code === undefined && fields.id !== undefined
        ? undefined
        : readText(fields.otp_code, `${pointer}/otp_code`);
    if (code !== undefined && !/^[0-9]{6}$/.test(code)) {
      throw invalidField(`${pointer}/otp_code`, 'expected six digits');
    }
    return {
      id: readText(fields.id ?? ids.cuid(), `${pointer}/id`),
      email: readText(fields.email, `${pointer}/email`).toLowerCase(),
      phone_number: readText(fields.phone_number, `${pointer}/phone_number`),
      ...(code !== undefined && { otp_code: code }),
      created_at_ms: readTime(fields.created_at_ms ?? nowMs, `${pointer}/created_at_ms`),
      updated_at_ms: readTime(fields.updated_at_ms ?? nowMs, `${pointer}/updated_at_ms`),
    };
  });
}

function readObject(value: unknown, pointer: string, names: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidField(pointer, 'expected an object');
  }
  const surplus = Object.keys(value).find((name) => !names.includes(name));
  if (surplus !== undefined) throw invalidField(`${pointer}/${surplus}`, 'no such setting');
  return value as Record<string, unknown>;
}

function readList(value: unknown, pointer: string): unknown[] {
  if (!Array.isArray(value)) throw invalidField(pointer, 'expected an array');
  return value;
}

function readText(value: unknown, pointer: string): string {
  if (typeof value !== 'string' || value === '') throw invalidField(pointer, 'expected a non-empty string');
  return value;
}

function readBoolean(value: unknown, pointer: string): boolean {
  if (typeof value !== 'boolean') throw invalidField(pointer, 'expected true or false');
  return value;
}

function readTime(value: unknown, pointer: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw invalidField(pointer, 'expected a Unix timestamp in milliseconds');
  }
  return value;
}

type NamesOf<Value> = {
  [Name in keyof AppResponse]-?: AppResponse[Name] extends Value ? Name : never;
}[keyof AppResponse];

/**
 * Boolean settings that the operator can set under the same name. Features that need no configuration are on by
 * default.
 */
const switches = {
  allowlist_enabled: false,
  apple_oauth: false,
  captcha_enabled: false,
  disable_plus_emails: false,
  discord_oauth: false,
  email_auth: true,
  enforce_wallet_uis: false,
  external_wallets_for_signup_enabled: false,
  farcaster_auth: false,
  farcaster_link_wallets_enabled: false,
  fiat_on_ramp_enabled: false,
  github_oauth: false,
  google_oauth: false,
  guest_auth: false,
  instagram_oauth: false,
  legacy_wallet_ui_config: false,
  line_oauth: false,
  linkedin_oauth: false,
  merge_accounts_by_email: false,
  passkey_auth: false,
  passkeys_for_signup_enabled: false,
  show_wallet_login_first: false,
  sms_auth: true,
  solana_wallet_auth: false,
  spotify_oauth: false,
  telegram_auth: false,
  telegram_oauth: false,
  tiktok_oauth: false,
  twitch_oauth: false,
  twitter_oauth: false,
  twitter_oauth_on_mobile_enabled: false,
  wallet_auth: false,
  whatsapp_enabled: false,
} as const satisfies Partial<Record<NamesOf<boolean>, boolean>>;

/** String settings. They are null unless the operator sets them. */
const texts = [
  'accent_color',
  'custom_api_url',
  'icon_url',
  'legal_name',
  'logo_url',
  'privacy_policy_url',
  'terms_and_conditions_url',
  'wallet_connect_cloud_project_id',
] as const satisfies readonly (keyof AppResponse)[];

const allowlistTexts = ['cta_link', 'cta_text', 'error_detail', 'error_title'] as const;

/**
 * Converts an app to wire form as its clients see it, without secrets. A stored setting of the wrong type counts as not
 * set.
 *
 * @param verificationKey SubjectPublicKeyInfo PEM of the key that signs the app's tokens.
 */
export function appSettingsView(app: App, verificationKey: string): AppResponse {
  const { settings } = app;
  const known = readAppSettings(settings);
  return {
    id: app.id,
    name: app.name,
    verification_key: verificationKey,
    data_classification: 'public',
    ...switchesOf(settings),
    ...textsOf(settings, texts),
    theme: textOf(settings.theme) ?? 'light',
    custom_jwt_auth: known.jwt_auth !== undefined,
    allowed_domains: [...known.allowed_origins],
    allowed_native_app_ids: listOf(settings.allowed_native_app_ids),
    allowed_native_app_url_schemes: listOf(settings.allowed_native_app_url_schemes),
    allowlist_config: textsOf(objectOf(settings.allowlist_config), allowlistTexts),
    max_linked_wallets_per_user: null,
    require_users_accept_terms: settings.require_users_accept_terms === true,
    // CHOICE: features that this server does not implement are off and cannot be set.
    custom_oauth_providers: [],
    enabled_captcha_provider: null,
    mfa_methods: [],
    smart_wallet_config: { enabled: false },
    embedded_wallet_config: {
      create_on_login: 'off',
      mode: 'user-controlled-server-wallets-only',
      ethereum: { create_on_login: 'off' },
      solana: { create_on_login: 'off' },
      user_owned_recovery_options: [],
    },
  };
}

function switchesOf(settings: AppSettings): Record<keyof typeof switches, boolean> {
  const entries = Object.entries(switches).map(([name, normal]) => {
    const set = settings[name];
    return [name, typeof set === 'boolean' ? set : normal];
  });
  return Object.fromEntries(entries);
}

function textsOf<Name extends string>(
  settings: AppSettings,
  names: readonly Name[],
): Record<Name, string | null> {
  return Object.fromEntries(names.map((name) => [name, textOf(settings[name])])) as Record<
    Name,
    string | null
  >;
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
}

function objectOf(value: unknown): AppSettings {
  return typeof value === 'object' && value !== null ? (value as AppSettings) : {};
}
