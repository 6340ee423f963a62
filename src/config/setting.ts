import { type Environment, type Faults, items, readText, words } from './checks.ts';

export type Command =
  | ('serve' | 'signer' | 'sandbox' | 'exec' | 'mock')
  | ('apps' | 'audit' | 'keys' | 'migrate' | 'policy' | 'restored' | 'users' | 'wallets');

type PerCommand = string | { readonly [name in Command]?: string };

/** One setting, with everything that its reader, the help texts and the reference page need. */
export interface Setting {
  /** The environment variable, and the commands that read it. */
  readonly variable?: `CUSTOS_${string}` | 'DATABASE_URL';
  readonly of?: readonly Command[];
  /** The option, in commander's notation, and the commands that have it. */
  readonly flag?: `--${string}`;
  readonly on?: readonly Command[];
  /** Whether `<variable>_FILE` may name a file with the value. */
  readonly file?: true;
  readonly secret?: true;
  /** `required`, or the condition under which it is required. */
  readonly required?: string;
  /** The value if the setting is not given, as text. */
  readonly default?: PerCommand;
  /** What omitting the setting means, if it has no default. */
  readonly absent?: PerCommand;
  readonly unit?: string;
  /**
   * The separator of the entries in the variable: white space or commas. For several entries, the option is repeated.
   */
  readonly list?: 'words' | 'items';
  readonly help: string;
  /** Reads the value from its text and records a fault if the text is wrong. Default: the value is the text. */
  readonly read?: (faults: Faults, name: string, given: never) => unknown;
}

type Read<S> = S extends { readonly read: (...args: never) => infer T }
  ? T
  : S extends { readonly list: string }
    ? readonly string[]
    : string;

type Value<S, C extends Command> = S extends { readonly default: string } | { readonly list: string }
  ? Read<S>
  : S extends { readonly default: Readonly<Record<C, string>> }
    ? Read<S>
    : Read<S> | undefined;

type FlagValue<S> = S extends { readonly list: string }
  ? string[]
  : S extends { readonly flag: `${string}<${string}` }
    ? string
    : boolean;

/** The options of a command as commander returns them, unparsed. */
export type Flags<Table> = {
  [K in keyof Table as Table[K] extends { readonly flag: string } ? K : never]?: FlagValue<Table[K]>;
};

/** Reads the settings of one command. */
export interface Reader<Table, C extends Command> {
  readonly faults: Faults;
  /** Returns the name of the setting for faults: the variable if the command reads it, or the option. */
  name(key: keyof Table): string;
  value<K extends keyof Table>(key: K): Value<Table[K], C>;
  /** Returns the texts that are given in the variable and in the file that `<variable>_FILE` names. */
  texts(key: keyof Table): readonly { readonly name: string; readonly text: string }[];
}

/**
 * Returns a reader of the settings of a command.
 *
 * @param env undefined if the command has only options.
 */
export function readerOf<Table extends Readonly<Record<keyof Table, Setting>>, C extends Command>(
  table: Table,
  command: C,
  {
    env,
    flags = {},
    nameIn,
  }: {
    readonly env?: Environment;
    readonly flags?: object;
    /** Returns where a file gives a setting; undefined if it does not. */
    readonly nameIn?: ((key: string) => string | undefined) | undefined;
  },
): Reader<Table, C> {
  const faults: Faults = [];
  const readsVariable = ({ of = [] }: Setting): boolean => env !== undefined && of.includes(command);
  const name = (key: keyof Table): string => {
    const { variable = '', flag = '' } = table[key] as Setting;
    return nameIn?.(String(key)) ?? (readsVariable(table[key]) ? variable : flag.split(' ')[0]!);
  };
  const read = (key: keyof Table): unknown => {
    const setting: Setting = table[key];
    const text = readsVariable(setting) ? env![setting.variable!] : undefined;
    const flag = (flags as Partial<Record<keyof Table, string | string[]>>)[key];
    const given =
      setting.list === undefined
        ? (flag ?? text ?? perCommand(setting.default, command))
        : [...(setting.list === 'words' ? words : items)(text), ...(flag ?? [])];
    if (given === undefined || setting.read === undefined) return given;
    return setting.read(faults, name(key), given as never);
  };
  const texts: Reader<Table, C>['texts'] = (key) => {
    const [own, file] = [name(key), `${name(key)}_FILE`];
    const [text, path] = [env?.[own], env?.[file]];
    const content = path === undefined ? undefined : readText(faults, file, path)?.trim();
    return [
      ...(text === undefined ? [] : [{ name: own, text }]),
      ...(content === undefined ? [] : [{ name: file, text: content }]),
    ];
  };
  return { faults, name, texts, value: (key) => read(key) as never };
}

function perCommand(text: PerCommand | undefined, command: Command): string | undefined {
  return typeof text === 'object' ? text[command] : text;
}

/**
 * Describes the value when the setting is missing, such as `default: 5 s` or `required`. Returns undefined for an
 * option.
 */
export function withoutValue(setting: Setting, command: Command): string | undefined {
  const { required, unit } = setting;
  if (required !== undefined && setting.of?.includes(command)) return required;
  const value = perCommand(setting.default, command);
  const shown = value === undefined || unit === undefined ? value : `${value} ${unit}`;
  const text = perCommand(setting.absent, command) ?? shown;
  return text === undefined ? undefined : `default: ${text}`;
}

/** Returns the help text of a variable. For a list, it says how to separate the entries. */
export function variableHelp({ list, help }: Setting): string {
  if (list === undefined) return help;
  return `${help}; entries are separated by ${list === 'words' ? 'spaces' : 'commas'}`;
}
