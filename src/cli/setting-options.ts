import { type Command, Option } from 'commander';
import { type ConfigFile, findConfigFile, readConfigFile } from '../config/config-file.ts';
import {
  type Setting,
  type Command as SettingCommand,
  variableHelp,
  withoutValue,
} from '../config/setting.ts';
import { allSettings, type SettingFlags, variableNames } from '../config/settings.ts';
import { collect } from './sandbox-options.ts';

const WIDTH = 80;

/** Returns the option that selects a sandbox's data folder instead of a database. */
export function dataOption(): Option {
  return new Option('--data <folder>', "use a sandbox's data folder instead of DATABASE_URL");
}

export function cellOption(): Option {
  return new Option('--cell <name>', 'act on this cell of CUSTOS_CELLS_FILE');
}

/**
 * Adds to a command the options that the table of settings lists under `name`. The code that reads the settings
 * validates their values.
 */
export function addSettingOptions(command: Command, name: SettingCommand): Command {
  const isServer = !['sandbox', 'exec', 'mock'].includes(name);
  for (const setting of allSettings) {
    const { flag, on = [], variable, of = [], list, help } = setting;
    if (flag === undefined || !on.includes(name)) continue;
    const hasVariable = variable !== undefined && of.includes(name);
    const without = withoutValue(setting, name);
    const text = [
      isServer && hasVariable ? `as ${variable}` : help,
      list === undefined ? '' : '; repeatable',
      isServer || without === undefined ? '' : ` (${without})`,
    ];
    const option = new Option(flag, text.join(''));
    if (list !== undefined) option.argParser(collect);
    // A server reads its environment variables without the help of commander.
    if (hasVariable && !isServer) option.env(variable);
    command.addOption(option);
  }
  return command;
}

/** Returns the help text about the environment variables of a command. */
export function environmentHelp(name: SettingCommand): string {
  const own = allSettings.filter(({ of = [] }) => of.includes(name));
  const entries = own.flatMap((setting) => entryOf(setting, name));
  return `\nSettings (environment; a name that ends in _FILE is for a file with the value):\n${entries.join('\n')}`;
}

function entryOf(setting: Setting, name: SettingCommand): string[] {
  const without = withoutValue(setting, name);
  const names = variableNames(setting).join(', ');
  const first = without === undefined ? names : `${names} (${without})`;
  return [...wrapped(first, 2), ...wrapped(variableHelp(setting), 6)];
}

/** Breaks a string into lines for the terminal, each indented by `indent` spaces. */
export function wrapped(text: string, indent: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && longer.length <= WIDTH) lines[lines.length - 1] = longer;
    else lines.push(`${' '.repeat(indent)}${word}`);
  }
  return lines;
}

/** Returns the options that were given, without the defaults that commander adds for `--no-` options. */
export function givenFlags(flags: SettingFlags, command: Command): SettingFlags {
  return Object.fromEntries(
    Object.entries(flags).filter(([name]) => command.getOptionValueSource(name) !== 'default'),
  );
}

/**
 * Reads the file of `--config`, or the one in the current folder. Returns undefined if there is neither.
 *
 * @throws ConfigError
 */
export function configFileOf({ config }: SettingFlags): ConfigFile | undefined {
  const path = findConfigFile(config);
  return path === undefined ? undefined : readConfigFile(path);
}
