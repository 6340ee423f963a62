import { type LightAccountFactory, lightAccountV2 } from '../../../engine/signing/ethereum/light-account.ts';
import { invalidField } from '../../../errors.ts';
import type { CryptoDepositAsset, CryptoDepositAssetFilter } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { Ids } from '../../../ports/runtime.ts';
import { normalizeEthereumAddress } from '../../base/addresses/normalize-wallet-address.ts';
import type { AppSettings } from './app.entity.ts';
import { findApp } from './find-app.ts';

/** The app setting with the routes of crypto deposit accounts. */
export const DEPOSIT_CONFIGS_SETTING = 'deposit_configs';

/** Routes that a request for a crypto deposit account refers to by an id. */
export interface DepositConfig {
  readonly id: string;
  readonly routes: readonly {
    readonly source: CryptoDepositAssetFilter;
    readonly destination: CryptoDepositAsset;
  }[];
}

const MAX_CONFIGS = 20;
const MAX_ROUTES = 10;
const MAX_VALUES = 100;
const MAX_TEXT = 256;
const MAX_ID = 64;

const POINTER = `/settings/${DEPOSIT_CONFIGS_SETTING}`;

/** The deposit configurations of an app. */
export function readDepositConfigs(settings: AppSettings): readonly DepositConfig[] {
  return (settings[DEPOSIT_CONFIGS_SETTING] as readonly DepositConfig[] | null | undefined) ?? [];
}

/**
 * Checks an operator's setting; a configuration without an id is given one. Whether assets and chains exist is checked
 * when an account is created, because that depends on the chains that are configured then.
 *
 * @throws ApiError invalid_data
 */
export function checkDepositConfigs(value: unknown, { cuid }: Pick<Ids, 'cuid'>): DepositConfig[] {
  const configs = listOf(value, POINTER, { least: 0, most: MAX_CONFIGS }).map(
    (item, index): DepositConfig => {
      const pointer = `${POINTER}/${index}`;
      const { id, routes } = fieldsOf(item, pointer, ['id', 'routes']);
      return {
        id: id === undefined ? cuid() : textOf(id, `${pointer}/id`, MAX_ID),
        routes: listOf(routes, `${pointer}/routes`, { least: 1, most: MAX_ROUTES }).map((route, at) =>
          routeOf(route, `${pointer}/routes/${at}`),
        ),
      };
    },
  );
  const ids = configs.map(({ id }) => id);
  const repeated = ids.findIndex((id, index) => ids.indexOf(id) !== index);
  if (repeated !== -1) throw invalidField(`${POINTER}/${repeated}/id`, 'another configuration has this id');
  return configs;
}

function routeOf(value: unknown, pointer: string): DepositConfig['routes'][number] {
  const { source, destination } = fieldsOf(value, pointer, ['source', 'destination']);
  const arriving = assetOf(destination, `${pointer}/destination`);
  if (arriving.chain === undefined) throw invalidField(`${pointer}/destination/chain`, 'expected a chain');
  return { source: filterOf(source, `${pointer}/source`), destination: arriving };
}

function filterOf(value: unknown, pointer: string): CryptoDepositAssetFilter {
  const { mode, values } = fieldsOf(value, pointer, ['mode', 'values']);
  if (mode === 'all') {
    if (values === undefined) return { mode };
    throw invalidField(`${pointer}/values`, 'expected none with the mode `all`');
  }
  if (mode !== 'include' && mode !== 'exclude') {
    throw invalidField(`${pointer}/mode`, 'expected `all`, `include` or `exclude`');
  }
  const listed = listOf(values, `${pointer}/values`, { least: 1, most: MAX_VALUES });
  return { mode, values: listed.map((each, index) => assetOf(each, `${pointer}/values/${index}`)) };
}

function assetOf(value: unknown, pointer: string): CryptoDepositAsset {
  const { asset, chain } = fieldsOf(value, pointer, ['asset', 'chain']);
  return {
    asset: textOf(asset, `${pointer}/asset`, MAX_TEXT),
    ...(chain === undefined ? {} : { chain: textOf(chain, `${pointer}/chain`, MAX_TEXT) }),
  };
}

function fieldsOf(value: unknown, pointer: string, names: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidField(pointer, 'expected an object');
  }
  const surplus = Object.keys(value).find((name) => !names.includes(name));
  if (surplus !== undefined) throw invalidField(`${pointer}/${surplus}`, 'no such setting');
  return value as Record<string, unknown>;
}

function listOf(
  value: unknown,
  pointer: string,
  { least, most }: { readonly least: number; readonly most: number },
): unknown[] {
  if (Array.isArray(value) && value.length >= least && value.length <= most) return value;
  throw invalidField(pointer, `expected an array of ${least} to ${most} items`);
}

function textOf(value: unknown, pointer: string, most: number): string {
  if (typeof value === 'string' && value !== '' && value.length <= most) return value;
  throw invalidField(pointer, `expected a string of 1 to ${most} characters`);
}

/** The app setting with the terms of the OAuth device flow. */
export const DEVICE_FLOW_SETTING = 'device_flow';

/** The terms of the OAuth device flow. */
export interface DeviceFlowSettings {
  /** Clients may name the app without its secret. */
  readonly public_clients: boolean;
  /** Where users enter their code; undefined: the page of the server, if it has one. */
  readonly verification_uri?: string;
  /** The minimum time between polls of a device. */
  readonly interval_seconds: number;
  /** A grant ends when it was not used for so long. */
  readonly refresh_idle_days: number;
  /** A grant ends at this age. */
  readonly grant_days: number;
}

/** CHOICE: the interval of RFC 8628, section 3.2; grants end after 30 unused days or a year. */
const defaults: DeviceFlowSettings = {
  public_clients: false,
  interval_seconds: 5,
  refresh_idle_days: 30,
  grant_days: 365,
};

/** The largest accepted numbers; the smallest is 1. */
const largest = { interval_seconds: 60, refresh_idle_days: 365, grant_days: 3_650 } as const;

const DEVICE_FLOW_SETTING_POINTER = `/settings/${DEVICE_FLOW_SETTING}`;

/** A stored setting with defaults for what it leaves out. */
export function readDeviceFlowSetting(stored: unknown): DeviceFlowSettings {
  return { ...defaults, ...(stored as Partial<DeviceFlowSettings> | undefined) };
}

/**
 * Checks an operator's setting.
 *
 * @throws ApiError invalid_data
 */
export function checkDeviceFlow(value: unknown): Partial<DeviceFlowSettings> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidField(DEVICE_FLOW_SETTING_POINTER, 'expected an object');
  }
  for (const [name, item] of Object.entries(value)) {
    const pointer = `${DEVICE_FLOW_SETTING_POINTER}/${name}`;
    if (name === 'public_clients') {
      if (typeof item !== 'boolean') throw invalidField(pointer, 'expected true or false');
    } else if (name === 'verification_uri') {
      requirePage(item, pointer);
    } else if (Object.hasOwn(largest, name)) {
      requireNumber(item, largest[name as keyof typeof largest], pointer);
    } else throw invalidField(pointer, 'no such setting');
  }
  return value;
}

/** The page gets the user code in its query, and clients show the URL: it has no query of its own. */
function requirePage(value: unknown, pointer: string): void {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  if (url?.protocol !== 'https:' || url.search !== '' || url.hash !== '') {
    throw invalidField(pointer, 'expected an https URL without a query');
  }
}

function requireNumber(value: unknown, most: number, pointer: string): void {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most) return;
  throw invalidField(pointer, `expected an integer from 1 to ${most}`);
}

/** Name of the app setting that replaces the published factory. */
export const SMART_ACCOUNT_FACTORY_SETTING = 'smart_account_factory';

/** The factory of the app's smart wallets: Light Account 2.0.0 unless its settings name another. */
export async function findSmartAccountFactory({
  app,
  em,
}: Pick<OperationContext, 'app' | 'em'>): Promise<LightAccountFactory> {
  const { settings } = await findApp(em, app.id);
  const setting = settings[SMART_ACCOUNT_FACTORY_SETTING];
  return setting === undefined ? lightAccountV2 : readFactory(checkSmartAccountFactory(setting));
}

/** The setting as it is stored. */
interface SmartAccountFactorySetting {
  readonly factory_address: string;
  readonly implementation_address: string;
  readonly version: string;
}

/**
 * Checks the setting `{factory_address, implementation_address, version?}` of a Light Account 2 factory.
 *
 * @throws ApiError invalid_data that names the setting.
 */
export function checkSmartAccountFactory(value: unknown): SmartAccountFactorySetting {
  const pointer = `/settings/${SMART_ACCOUNT_FACTORY_SETTING}`;
  if (typeof value !== 'object' || value === null) throw invalidField(pointer, 'expected an object');
  const fields = value as Record<string, unknown>;
  const { version = lightAccountV2.version } = fields;
  if (typeof version !== 'string') throw invalidField(`${pointer}/version`, 'expected a string');
  return {
    factory_address: readAddress(fields.factory_address, `${pointer}/factory_address`),
    implementation_address: readAddress(fields.implementation_address, `${pointer}/implementation_address`),
    version,
  };
}

function readFactory(setting: SmartAccountFactorySetting): LightAccountFactory {
  return {
    factoryAddress: setting.factory_address,
    implementationAddress: setting.implementation_address,
    version: setting.version,
  };
}

function readAddress(value: unknown, pointer: string): string {
  const address = typeof value === 'string' ? normalizeEthereumAddress(value) : undefined;
  if (address === undefined) throw invalidField(pointer, 'expected an address of `ethereum`');
  return address;
}
