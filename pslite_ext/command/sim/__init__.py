"""`mercury sim`: what if the bandwidth, the policy or the number of machines were another?"""
