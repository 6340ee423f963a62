import type { CompletedCommand } from './completion.ts';

/** A script for bash 3.2 or newer. */
export function bashScript(commands: readonly CompletedCommand[]): string {
  return [
    '# bash completion of custos',
    '_custos() {',
    `  local current=\${COMP_WORDS[COMP_CWORD]} previous='' command='' words='' i`,
    `  if ((COMP_CWORD > 1)); then previous=\${COMP_WORDS[COMP_CWORD - 1]}; fi`,
    '  for ((i = 1; i < COMP_CWORD; i++)); do',
    `    case "$command/\${COMP_WORDS[i]}" in`,
    `      ${commandSteps(commands).join(' | ')})`,
    `        command="\${command:+$command }\${COMP_WORDS[i]}" ;;`,
    '    esac',
    '  done',
    '  COMPREPLY=()',
    '  case "$command/$previous" in',
    ...commands.flatMap(bashValues),
    '  esac',
    '  case "$command" in',
    ...commands.map(({ path, ...command }) => `    ${single(path)}) words=${single(wordsOf(command))} ;;`),
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    'complete -o bashdefault -o default -F _custos custos',
  ].join('\n');
}

function bashValues({ path, options }: CompletedCommand): string[] {
  return options
    .filter(({ value }) => value !== 'none')
    .map(({ names, value, choices }) => {
      const pattern = names.map((name) => single(`${path}/${name}`)).join(' | ');
      return `    ${pattern}) ${bashChoice(value, choices)}; return ;;`;
    });
}

function bashChoice(value: string, choices: readonly string[]): string {
  if (choices.length > 0) return `COMPREPLY=($(compgen -W ${single(choices.join(' '))} -- "$current"))`;
  if (value === 'folder') return 'COMPREPLY=($(compgen -d -- "$current"))';
  return value === 'file' ? 'COMPREPLY=($(compgen -f -- "$current"))' : ':';
}

/** A script for zsh, after `compinit`. */
export function zshScript(commands: readonly CompletedCommand[]): string {
  return [
    '#compdef custos',
    '_custos() {',
    `  local command='' previous=\${words[CURRENT - 1]} i`,
    '  local -a found',
    '  for ((i = 2; i < CURRENT; i++)); do',
    `    case "$command/\${words[i]}" in`,
    `      ${commandSteps(commands).join('|')})`,
    `        command="\${command:+$command }\${words[i]}" ;;`,
    '    esac',
    '  done',
    '  case "$command/$previous" in',
    ...commands.flatMap(zshValues),
    '  esac',
    '  case "$command" in',
    ...commands.map(zshWords),
    '  esac',
    `  _describe -t values 'custos' found`,
    '}',
    'compdef _custos custos',
  ].join('\n');
}

function zshValues({ path, options }: CompletedCommand): string[] {
  return options
    .filter(({ value }) => value !== 'none')
    .map(({ names, value, choices }) => {
      const pattern = names.map((name) => single(`${path}/${name}`)).join('|');
      const files = value === 'folder' ? '_files -/' : value === 'file' ? '_files' : ':';
      return `    ${pattern}) ${choices.length > 0 ? `compadd -- ${choices.join(' ')}` : files}; return ;;`;
    });
}

function zshWords({ path, subcommands, options, words }: CompletedCommand): string {
  const described = [
    ...subcommands.map(({ name, description }) => single(`${name}:${description}`)),
    ...words.map(single),
    ...options.flatMap(({ names, description }) => names.map((name) => single(`${name}:${description}`))),
  ];
  return `    ${single(path)}) found=(${described.join(' ')}) ;;`;
}

/** A script for fish 3 or newer. */
export function fishScript(commands: readonly CompletedCommand[]): string {
  return [
    '# fish completion of custos',
    'function __custos_command',
    `  set -l command ''`,
    '  for word in (commandline -opc)[2..-1]',
    '    switch "$command/$word"',
    `      case ${commandSteps(commands).join(' ')}`,
    '        set command (string trim "$command $word")',
    '    end',
    '  end',
    '  echo "$command"',
    'end',
    'complete -c custos -f',
    ...commands.flatMap(fishLines),
  ].join('\n');
}

function fishLines({ path, subcommands, options, words }: CompletedCommand): string[] {
  const start = `complete -c custos -n ${fishSingle(`test (__custos_command) = '${path}'`)}`;
  return [
    ...subcommands.map(({ name, description }) => `${start} -a ${name} -d ${fishSingle(description)}`),
    ...(words.length === 0 ? [] : [`${start} -a ${fishSingle(words.join(' '))}`]),
    ...options.map(({ names, description, value, choices }) => {
      const flags = names.map((name) =>
        name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
      );
      const values = choices.length > 0 ? ` -a ${fishSingle(choices.join(' '))}` : '';
      const takes = value === 'none' ? '' : value === 'word' ? ' -x' : ' -r -F';
      return `${start} ${flags.join(' ')}${takes}${values} -d ${fishSingle(description)}`;
    }),
  ];
}

/** Every step from a command to a subcommand, as a quoted pattern `command/subcommand`. */
function commandSteps(commands: readonly CompletedCommand[]): string[] {
  return commands.flatMap(({ path, subcommands }) =>
    subcommands.map(({ name }) => single(`${path}/${name}`)),
  );
}

function wordsOf({ subcommands, options, words }: Omit<CompletedCommand, 'path'>): string {
  return [...subcommands.map(({ name }) => name), ...words, ...options.flatMap(({ names }) => names)].join(
    ' ',
  );
}

function single(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Inside single quotes, fish reads `\\'` and `\\\\`. */
function fishSingle(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
