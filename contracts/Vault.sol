// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {Token} from "./Token.sol";

/// @title An ERC-4626 vault that lends to one borrower, who pays interest by the clock.
/// @dev Shares are those of OpenZeppelin's ERC4626: virtual shares and one virtual unit of the asset make an attack by
/// inflation cost more than it earns, and the caller bears the rounding. The sandbox writes the terms into the storage.
contract Vault is Token {
    uint256 private constant FULL_BPS = 10_000;
    uint256 private constant YEAR = 365 days;

    // Each variable has a slot of its own, so that the sandbox writes whole words.
    address public asset;
    /// @notice 10 ** (decimals of the shares - decimals of the asset).
    uint256 public virtualShares;
    /// @notice Whether fees are kept for the owner to collect. Otherwise they become shares of the owner.
    bool public hasClaimableFees;
    /// @notice The yield before the fee.
    uint256 public apyBps;
    address public owner;
    /// @notice The fee, as a part of the yield.
    uint256 public feeBps;
    bool public isPaused;
    /// @notice What the borrower holds of the depositors' assets.
    uint256 public lent;
    /// @notice Holds what the vault has lent, and the funds for the interest.
    address public borrower;
    uint256 private _claimableFees;
    /// @notice When interest was last paid.
    uint256 public paidAt;
    /// @notice Interest below one unit, in 1 / (10,000 * seconds of a year).
    uint256 public remainder;

    event Deposit(address indexed sender, address indexed owner, uint256 assets, uint256 shares);
    event Withdraw(
        address indexed sender, address indexed receiver, address indexed owner, uint256 assets, uint256 shares
    );

    error ERC4626ExceededMaxDeposit(address receiver, uint256 assets, uint256 max);
    error ERC4626ExceededMaxMint(address receiver, uint256 shares, uint256 max);
    error ERC4626ExceededMaxWithdraw(address owner, uint256 assets, uint256 max);
    error ERC4626ExceededMaxRedeem(address owner, uint256 shares, uint256 max);

    /// @dev The vault as if its interest had been paid now.
    struct Accrued {
        uint256 assets;
        uint256 shares;
        /// @dev Interest that the borrower still owes.
        uint256 unpaid;
        uint256 claimableFees;
        /// @dev New shares of the owner, counted in `shares`.
        uint256 feeShares;
        uint256 remainder;
    }

    function totalAssets() public view returns (uint256) {
        return _accrued().assets;
    }

    function convertToShares(uint256 assets) external view returns (uint256) {
        return _sharesFor(_accrued(), assets, Math.Rounding.Floor);
    }

    function convertToAssets(uint256 shares) external view returns (uint256) {
        return _assetsFor(_accrued(), shares, Math.Rounding.Floor);
    }

    function previewDeposit(uint256 assets) external view returns (uint256) {
        return _sharesFor(_accrued(), assets, Math.Rounding.Floor);
    }

    function previewMint(uint256 shares) external view returns (uint256) {
        return _assetsFor(_accrued(), shares, Math.Rounding.Ceil);
    }

    function previewWithdraw(uint256 assets) external view returns (uint256) {
        return _sharesFor(_accrued(), assets, Math.Rounding.Ceil);
    }

    function previewRedeem(uint256 shares) external view returns (uint256) {
        return _assetsFor(_accrued(), shares, Math.Rounding.Floor);
    }

    function maxDeposit(address) public view returns (uint256) {
        return isPaused ? 0 : type(uint256).max;
    }

    function maxMint(address) public view returns (uint256) {
        return isPaused ? 0 : type(uint256).max;
    }

    function maxWithdraw(address holder) public view returns (uint256) {
        if (isPaused) return 0;
        Accrued memory now_ = _accrued();
        return Math.min(_assetsFor(now_, balanceOf[holder], Math.Rounding.Floor), _payable(now_));
    }

    function maxRedeem(address holder) public view returns (uint256) {
        if (isPaused) return 0;
        Accrued memory now_ = _accrued();
        (uint256 shares, uint256 most) = (balanceOf[holder], _payable(now_));
        if (_assetsFor(now_, shares, Math.Rounding.Floor) <= most) return shares;
        return Math.min(shares, _sharesFor(now_, most, Math.Rounding.Floor));
    }

    function deposit(uint256 assets, address receiver) external returns (uint256 shares) {
        accrue();
        uint256 most = maxDeposit(receiver);
        if (assets > most) revert ERC4626ExceededMaxDeposit(receiver, assets, most);
        shares = _sharesFor(_accrued(), assets, Math.Rounding.Floor);
        _moveIn(receiver, assets, shares);
    }

    function mint(uint256 shares, address receiver) external returns (uint256 assets) {
        accrue();
        uint256 most = maxMint(receiver);
        if (shares > most) revert ERC4626ExceededMaxMint(receiver, shares, most);
        assets = _assetsFor(_accrued(), shares, Math.Rounding.Ceil);
        _moveIn(receiver, assets, shares);
    }

    function withdraw(uint256 assets, address receiver, address holder) external returns (uint256 shares) {
        accrue();
        uint256 most = maxWithdraw(holder);
        if (assets > most) revert ERC4626ExceededMaxWithdraw(holder, assets, most);
        shares = _sharesFor(_accrued(), assets, Math.Rounding.Ceil);
        _moveOut(receiver, holder, assets, shares);
    }

    function redeem(uint256 shares, address receiver, address holder) external returns (uint256 assets) {
        accrue();
        uint256 most = maxRedeem(holder);
        if (shares > most) revert ERC4626ExceededMaxRedeem(holder, shares, most);
        assets = _assetsFor(_accrued(), shares, Math.Rounding.Floor);
        _moveOut(receiver, holder, assets, shares);
    }

    /// @notice The fees that the owner can collect, in a vault that keeps them.
    function getClaimableFees() external view returns (uint256) {
        require(hasClaimableFees);
        return _accrued().claimableFees;
    }

    function withdrawFees(address to, uint256 amount) external {
        accrue();
        require(msg.sender == owner, "Ownable: caller is not the owner");
        require(hasClaimableFees && amount <= _claimableFees, "INSUFFICIENT_FEES");
        _claimableFees -= amount;
        _pay(to, amount);
    }

    /// @notice Pays the interest up to now. Anybody may call it.
    function accrue() public {
        Accrued memory now_ = _accrued();
        (_claimableFees, remainder, paidAt) = (now_.claimableFees, now_.remainder, Math.max(block.timestamp, paidAt));
        if (now_.unpaid > 0) _take(borrower, now_.unpaid);
        if (now_.feeShares > 0) _mint(owner, now_.feeShares);
    }

    /// @dev assets * yield * time, rounded down, at most what the borrower has of its own.
    function _accrued() private view returns (Accrued memory now_) {
        uint256 assets = Token(asset).balanceOf(address(this)) + lent - _claimableFees;
        uint256 elapsed = block.timestamp > paidAt ? block.timestamp - paidAt : 0;
        uint256 due = remainder + assets * apyBps * elapsed;
        uint256 interest = Math.min(due / (FULL_BPS * YEAR), Token(asset).balanceOf(borrower) - lent);
        uint256 fee = interest * feeBps / FULL_BPS;
        now_.unpaid = interest;
        now_.remainder = due % (FULL_BPS * YEAR);
        now_.claimableFees = _claimableFees + (hasClaimableFees ? fee : 0);
        now_.assets = assets + interest - (hasClaimableFees ? fee : 0);
        now_.shares = totalSupply;
        if (hasClaimableFees || fee == 0) return now_;
        // The owner's new shares are worth the fee, in what the others have with it.
        now_.assets -= fee;
        now_.feeShares = _sharesFor(now_, fee, Math.Rounding.Floor);
        now_.assets += fee;
        now_.shares += now_.feeShares;
    }

    /// @dev What the vault can pay to depositors: what it holds and what the borrower owes, without fees.
    function _payable(Accrued memory now_) private view returns (uint256) {
        uint256 held = Token(asset).balanceOf(address(this)) + now_.unpaid;
        return held > now_.claimableFees ? held - now_.claimableFees : 0;
    }

    function _sharesFor(Accrued memory now_, uint256 assets, Math.Rounding rounding) private view returns (uint256) {
        return Math.mulDiv(assets, now_.shares + virtualShares, now_.assets + 1, rounding);
    }

    function _assetsFor(Accrued memory now_, uint256 shares, Math.Rounding rounding) private view returns (uint256) {
        return Math.mulDiv(shares, now_.assets + 1, now_.shares + virtualShares, rounding);
    }

    function _moveIn(address receiver, uint256 assets, uint256 shares) private {
        _take(msg.sender, assets);
        _mint(receiver, shares);
        emit Deposit(msg.sender, receiver, assets, shares);
    }

    function _moveOut(address receiver, address holder, uint256 assets, uint256 shares) private {
        if (msg.sender != holder) _spendAllowance(holder, msg.sender, shares);
        _burn(holder, shares);
        _pay(receiver, assets);
        emit Withdraw(msg.sender, receiver, holder, assets, shares);
    }

    function _take(address from, uint256 amount) private {
        _call(abi.encodeCall(Token.transferFrom, (from, address(this), amount)));
    }

    function _pay(address to, uint256 amount) private {
        _call(abi.encodeCall(Token.transfer, (to, amount)));
    }

    /// @dev Calls the asset and passes its reason on when it reverts.
    function _call(bytes memory data) private {
        (bool isDone, bytes memory answer) = asset.call(data);
        if (!isDone) {
            assembly {
                revert(add(answer, 32), mload(answer))
            }
        }
        require(answer.length == 0 || abi.decode(answer, (bool)));
    }
}
