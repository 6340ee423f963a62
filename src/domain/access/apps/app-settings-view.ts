import type { AppResponse } from '../../../generated/schemas.ts';
import type { App, AppSettings } from './app.entity.ts';
import { readAppSettings } from './app-settings.ts';

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

/** String settings, null unless the operator sets them. */
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
 * An app as its clients see it; contains no secrets. A stored setting of the wrong type counts as not set.
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
