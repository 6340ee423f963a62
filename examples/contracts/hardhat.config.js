require('@nomiclabs/hardhat-ethers');
const { subtask } = require('hardhat/config');
const { TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD } = require('hardhat/builtin-tasks/task-names');

const mnemonic = 'test test test test test test test test test test test junk';
const { CUSTOS_RPC_URL = 'http://127.0.0.1:8545' } = process.env;

// The compiler of the lock, so that nothing is downloaded.
subtask(TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD, async () => ({
  compilerPath: require.resolve('solc/soljson.js'),
  isSolcJs: true,
  version: '0.8.17',
  longVersion: '0.8.17+commit.8df45f5f',
}));

module.exports = {
  solidity: '0.8.17',
  // A number without a name is a chain of its own.
  networks: { custos: { url: `${CUSTOS_RPC_URL}/31337`, accounts: { mnemonic } } },
};
