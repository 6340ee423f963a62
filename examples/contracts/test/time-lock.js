const assert = require('node:assert/strict');
const { ethers, network } = require('hardhat');

const YEAR = 365 * 24 * 3600;
const ask = (method, ...params) => network.provider.send(method, params);

describe('TimeLock', () => {
  let snapshot;
  let lock;
  let unlockTime;

  before(async () => {
    for (const { address } of (await ethers.getSigners()).slice(0, 2)) {
      await ask('hardhat_setBalance', address, '0x56bc75e2d63100000');
    }
    const { timestamp } = await ethers.provider.getBlock('latest');
    unlockTime = timestamp + YEAR;
    const factory = await ethers.getContractFactory('TimeLock');
    lock = await factory.deploy(unlockTime, { value: 7n });
    await lock.deployed();
  });
  beforeEach(async () => {
    snapshot = await ask('evm_snapshot');
  });
  afterEach(async () => {
    assert.equal(await ask('evm_revert', snapshot), true);
  });

  it('keeps the ether until its time', async () => {
    await assert.rejects(lock.callStatic.withdraw(), /TooEarly/);
    assert.equal((await ethers.provider.getBalance(lock.address)).toNumber(), 7);
  });

  it('pays its owner from then on', async () => {
    await ask('evm_setNextBlockTimestamp', unlockTime);
    const receipt = await (await lock.withdraw({ gasLimit: 100_000 })).wait();
    assert.equal(receipt.events[0].event, 'Withdrawal');
    assert.equal((await ethers.provider.getBlock(receipt.blockNumber)).timestamp, unlockTime);
    assert.equal((await ethers.provider.getBalance(lock.address)).toNumber(), 0);
  });

  it('has its time back after a snapshot, and pays nobody else', async () => {
    await assert.rejects(lock.callStatic.withdraw(), /TooEarly/);
    const [, other] = await ethers.getSigners();
    await ask('evm_increaseTime', YEAR);
    await ask('evm_mine');
    await assert.rejects(lock.connect(other).callStatic.withdraw(), /not the owner/);
  });
});
