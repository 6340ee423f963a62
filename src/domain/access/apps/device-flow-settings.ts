import { invalidField } from '../../../errors.ts';

/** The app setting with the terms of the OAuth device flow. */
export const DEVICE_FLOW_SETTING = 'device_flow';

/** The app's settings for the OAuth device flow (RFC 8628). */
export interface DeviceFlowSettings {
  /** Whether clients may request codes with the app's id alone, without its secret. */
  readonly public_clients: boolean;
  /** The page where users enter their code. If absent, the server's own page, if it has one. */
  readonly verification_uri?: string;
  /** The minimum time between polls of a device. */
  readonly interval_seconds: number;
  /** A grant ends when it has not been used for this many days. */
  readonly refresh_idle_days: number;
  /** A grant ends this many days after its creation, even if it is in use. */
  readonly grant_days: number;
}

/**
 * CHOICE: the polling interval is the default of RFC 8628, section 3.2. Grants end after 30 unused days or after a
 * year.
 */
const defaults: DeviceFlowSettings = {
  public_clients: false,
  interval_seconds: 5,
  refresh_idle_days: 30,
  grant_days: 365,
};

/** The largest accepted numbers. The smallest accepted number is 1 for each. */
const largest = { interval_seconds: 60, refresh_idle_days: 365, grant_days: 3650 } as const;
const DEVICE_FLOW_SETTING_POINTER = `/settings/${DEVICE_FLOW_SETTING}`;

/** Reads a stored setting and fills in the defaults. */
export function readDeviceFlowSetting(stored: unknown): DeviceFlowSettings {
  return { ...defaults, ...(stored as Partial<DeviceFlowSettings> | undefined) };
}

/**
 * Checks the setting that an operator sends. The result contains only the given members.
 *
 * @throws ApiError invalid_data that names the member.
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

/**
 * Refuses a URL with a query, because clients append the user code as the query.
 *
 * @throws ApiError invalid_data
 */
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
