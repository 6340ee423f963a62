import { type Environment, items, publicUrls, share } from './config-checks.ts';

/** Where traces and metrics are sent. */
export interface TelemetrySettings {
  /** Base URL of an OTLP/HTTP collector, without a trailing slash. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The share of new traces that are recorded. */
  readonly share: number;
  readonly service: string;
}

export const telemetryNames = [
  'CUSTOS_OTLP_URL',
  'CUSTOS_OTLP_HEADERS',
  'CUSTOS_OTLP_SERVICE',
  'CUSTOS_TRACE_SHARE',
] as const;

/** Undefined: nothing is sent. Faults never repeat a header, which may be a credential. */
export function telemetrySettings(faults: string[], env: Environment): TelemetrySettings | undefined {
  const { CUSTOS_OTLP_URL: url, CUSTOS_OTLP_HEADERS: headers, CUSTOS_OTLP_SERVICE: service } = env;
  const settings = {
    url: publicUrls(faults, 'CUSTOS_OTLP_URL', url === undefined ? [] : [url])[0],
    headers: headersOf(faults, headers),
    share: share(faults, 'CUSTOS_TRACE_SHARE', env.CUSTOS_TRACE_SHARE ?? '0.1'),
    service: service ?? 'custos',
  };
  if (settings.url !== undefined) return { ...settings, url: settings.url };
  const useless = telemetryNames.filter((name) => env[name] !== undefined);
  if (useless.length > 0) faults.push(`${useless.join(', ')}: CUSTOS_OTLP_URL is missing`);
  return undefined;
}

/** `name=value,name=value`, as in OpenTelemetry's own settings. */
function headersOf(faults: string[], list: string | undefined): Record<string, string> {
  const entries = items(list).map((item) => /^([\w-]+)=([\x21-\x7e ]+)$/.exec(item));
  if (entries.some((entry) => entry === null)) {
    faults.push('CUSTOS_OTLP_HEADERS: expected `name=value`, separated by commas');
  }
  return Object.fromEntries(entries.flatMap((entry) => (entry === null ? [] : [[entry[1]!, entry[2]!]])));
}
